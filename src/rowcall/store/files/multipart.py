"""A large object of S3 in the making: its parts come in any order, and none is seen before all are there."""

from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from rowcall.errors import Retryable
from rowcall.formats.reading import MIB
from rowcall.model import Code

PART = 8 * MIB
MOST_PARTS = 10_000
"""Of one object, says S3."""
AT_ONCE = 2
"""Parts of one file under way, so that an upload takes no more than three in memory."""
LARGE = "large/"
"""Where objects are that were sent in parts."""
MISSING = ("404", "NoSuchKey", "NotFound")
_NO_UPLOAD = "NoSuchUpload"
sending = ThreadPoolExecutor(16, thread_name_prefix="s3")


@dataclass(frozen=True, slots=True)
class Multipart:
    """Known to S3 by a key and an id. A part that is sent twice is the last one that was sent."""

    s3: Any  # boto3 has no types
    key: Mapping[str, str]
    id: str

    @classmethod
    def begin(cls, s3: Any, key: Mapping[str, str]) -> "Multipart":
        return cls(s3, key, s3.create_multipart_upload(**key)["UploadId"])

    def send(self, number: int, part: bytes) -> str:
        """The tag by which S3 knows what was sent."""
        return self.s3.upload_part(**self.key, UploadId=self.id, PartNumber=number, Body=part)["ETag"]

    def complete(self, tags: Mapping[int, str]) -> None:
        """Make it an object. S3 refuses if a part is another one than its tag says."""
        parts = [{"PartNumber": number, "ETag": tags[number]} for number in sorted(tags)]
        self.s3.complete_multipart_upload(**self.key, UploadId=self.id, MultipartUpload={"Parts": parts})

    def is_known(self) -> bool:
        """Whether S3 still waits for parts of it. Other servers of its kind tell so here alone."""
        try:
            self.s3.list_parts(**self.key, UploadId=self.id, MaxParts=1)
        except ClientError as error:
            if code_of(error) == _NO_UPLOAD:
                return False
            raise
        return True

    def abort(self) -> None:
        """Give it up; if that fails, it is swept later."""
        with suppress(BotoCoreError, ClientError):
            self.s3.abort_multipart_upload(**self.key, UploadId=self.id)


def part_size(most: int) -> int:
    """How large parts are of an object that is this large."""
    return max(PART, -(-most // MOST_PARTS))


def code_of(error: ClientError) -> str:
    """What S3 calls it."""
    answer: dict[str, Any] = error.response  # pyright: ignore[reportUnknownMemberType] (has no types)
    return str(answer.get("Error", {}).get("Code", ""))


@contextmanager
def asking(where: str) -> Generator[None]:
    """Errors of S3 in our words. All may pass, or be mended by somebody: the same work goes on then."""
    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        hint = "Check ROWCALL_FILE_STORE, ROWCALL_S3_ENDPOINT and the credentials; `rowcall doctor` tries them."
        told = f"The file store {where} did not do it: {error}."
        raise Retryable(Code.FILE_STORE_AWAY, told, hint=hint) from error
