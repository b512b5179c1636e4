-- What a site has of its own, with the arguments that Slurm passes.
-- luacheck: no unused args
function slurm_job_submit(job_desc, part_list, submit_uid)
   if job_desc.name == "forbidden" then
      slurm.log_user("the site says no")
      return slurm.ERROR
   end
   return slurm.SUCCESS
end

function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
   return slurm.SUCCESS
end

return slurm.SUCCESS
