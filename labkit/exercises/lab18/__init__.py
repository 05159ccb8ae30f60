"""Lab 18, pipelines: what is asked, given and run."""

ORDER = ("naive-idle", "gpipe", "one-f-one-b", "pipeline-step", "interleaved", "zero-bubble")
