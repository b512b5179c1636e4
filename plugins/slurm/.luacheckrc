-- What Slurm's job_submit/lua plugin provides, and the two functions it calls.
std = "min"
max_line_length = 100
read_globals = { "slurm" }
globals = { "slurm_job_submit", "slurm_job_modify" }
unused_args = true
