"""How data are written: text, CSV, Parquet files, workbooks and databases, read as transactions or as tables."""
