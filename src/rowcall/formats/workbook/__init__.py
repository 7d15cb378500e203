"""Workbooks: XLSX, XLSM, XLS, XLSB, ODS; and XLSX written."""
