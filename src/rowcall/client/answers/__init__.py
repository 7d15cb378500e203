"""What a server answers with, and what it is asked for. Fields that a newer server adds are passed over.

The command line shows these too, wherever they come from.
"""

from rowcall.client.answers.edits import CellEdit, EditCount, Edited, Merged, NotMerged, Replaced, Replacement, Sample
from rowcall.client.answers.exports import Export, ExportOrder, ExportProgress
from rowcall.client.answers.health import Check, Readiness
from rowcall.client.answers.importers import Importer, ImporterField, ImporterRule, ImporterSummary
from rowcall.client.answers.items import Issue, IssueCount, Item, PendingItem, Reprocessed, Summary, View
from rowcall.client.answers.jobs import Counts, File, ImportConfig, Job, OtherJob, Progress, TemplateName, Told
from rowcall.client.answers.previews import ChangedField, Preview, Undo
from rowcall.client.answers.receipts import Column, Fingerprint, FingerprintFinding, Receipt
from rowcall.client.answers.undos import Dependents, UndoField, UndoPreview, UndoReceipt, UndoSample
from rowcall.client.answers.wire import Wire

__all__ = [
    "CellEdit",
    "ChangedField",
    "Check",
    "Column",
    "Counts",
    "Dependents",
    "EditCount",
    "Edited",
    "Export",
    "ExportOrder",
    "ExportProgress",
    "File",
    "Fingerprint",
    "FingerprintFinding",
    "ImportConfig",
    "Importer",
    "ImporterField",
    "ImporterRule",
    "ImporterSummary",
    "Issue",
    "IssueCount",
    "Item",
    "Job",
    "Merged",
    "NotMerged",
    "OtherJob",
    "PendingItem",
    "Preview",
    "Progress",
    "Readiness",
    "Receipt",
    "Replaced",
    "Replacement",
    "Reprocessed",
    "Sample",
    "Summary",
    "TemplateName",
    "Told",
    "Undo",
    "UndoField",
    "UndoPreview",
    "UndoReceipt",
    "UndoSample",
    "View",
    "Wire",
]
