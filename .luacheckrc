-- Slurm's Lua is 5.1 in Debian's build and later elsewhere: what we write must run on 5.1 to 5.4.
std = "min"
max_line_length = 100

-- job_submit/lua: slurmctld sets `slurm`, and calls these two.
files["plugins/**/*.lua"] = {
    globals = { "slurm_job_submit", "slurm_job_modify" },
    read_globals = { "slurm" },
}
files["tests/**/*.lua"] = {
    globals = { "slurm", "slurm_job_submit", "slurm_job_modify" },
}
