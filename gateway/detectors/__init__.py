"""The protocols of detectors: what each kind is asked, and how its answer is read. Pure: sends nothing."""
