-- job_submit.lua for sites that have none of their own. It lies beside slurm.conf, with pliant.lua
-- beside it, and slurm.conf says JobSubmitPlugins=lua. A site that has one keeps it and adds the
-- lines between "Pliant begins" and "Pliant ends", and the two calls below.
--
-- A job_submit.lua that fails while slurmctld starts keeps it from starting: nothing here can fail.

-- Pliant begins
local pliant_found, pliant = pcall(function()
   local here = debug.getinfo(1, "S").source:match("^@(.*)/[^/]*$")
   if here and not package.path:find(here .. "/?.lua", 1, true) then
      package.path = here .. "/?.lua;" .. package.path
   end
   return require("pliant").setup({})
end)
if not pliant_found then
   pcall(slurm.log_info, "%s", "pliant: not loaded: " .. tostring(pliant))
end

local function pliant_says(call, ...)
   local fine, result = pcall(function(...)
      return pliant[call](...)
   end, ...)
   return fine and type(result) == "number" and result or slurm.SUCCESS
end
-- Pliant ends

function slurm_job_submit(job_desc, part_list, submit_uid)
   return pliant_says("job_submit", job_desc, part_list, submit_uid)
end

function slurm_job_modify(job_desc, job_rec, part_list, submit_uid)
   return pliant_says("job_modify", job_desc, job_rec, part_list, submit_uid)
end

return slurm.SUCCESS
