-- What pliant.lua costs slurmctld for texts of 10 MB. Each field that it reads of a job is one in
-- turn, in several fillings; so are the SPANK options, their names, and their number. Prints a line
-- for each, WHAT COST ANSWER: the cost in CPU time, as parts of one pass over such a text, and what
-- the door answers, or none.
local SIZE = tonumber(arg[1])
local SPANK = "_SLURM_SPANK_OPTION_pliant_"
local FLAG = SPANK .. "moldable=gpus=1-4"
local FILLINGS = { ",", " ", "g", "pliant=v1: ", "pliant:gpus=1-4; " }

slurm = { SUCCESS = 0, ERROR = -1 }
for _, name in ipairs({ "log_user", "log_info", "log_error" }) do
   slurm[name] = function() end
end

-- A luasocket in front of a door that answers at once.
local answer
local door = { settimeout = function() end, close = function() end }
function door.connect() return 1 end
function door.send() return 1 end
function door.receive() return answer end
package.preload["socket.unix"] = function()
   return { stream = function() return door end }
end
package.preload["socket.core"] = function() error("none") end

local pliant = require("pliant").setup({ breaker = 0 })

local known = {}
local function filled(filling)
   known[filling] = known[filling] or filling:rep(math.floor(SIZE / #filling))
   return known[filling]
end

local was_read = {}
local function job_desc(fields)
   return setmetatable({}, {
      __index = function(_, name)
         was_read[name] = true
         return fields[name]
      end,
      __newindex = function(_, name, value) fields[name] = value end,
   })
end

-- The least of three, as the machine may be busy.
local function cost_of(call)
   local least = math.huge
   for _ = 1, 3 do
      local begin = os.clock()
      call()
      least = math.min(least, os.clock() - begin)
   end
   return least
end

local one_pass = cost_of(function() return filled(","):find("^,*$") end)

local function submit(fields)
   fields.spank_job_env = fields.spank_job_env or { [0] = FLAG }
   fields.spank_job_env_size = fields.spank_job_env_size or 1
   fields.environment = fields.environment or {}
   return function() return pliant.job_submit(job_desc(fields), {}, 1000) end
end

local function tell(what, fields)
   collectgarbage()
   local cost = cost_of(submit(fields)) / one_pass
   print(string.format("%s\t%.4f\t%s", what, cost, answer or "none"))
end

local entries = {}
for at = 0, 10 ^ 6 - 1 do
   entries[at] = FLAG
end
for _, said in ipairs({ "ok token=pliant%3Dv1%3AYQ%3D%3D%3A00620062", "ok away=1", false }) do
   answer = said or nil
   submit({ script = "x", spank_job_env = { [0] = SPANK .. "class=trial" } })()
   tell("nothing long", {})
   for name in pairs(was_read) do
      if not name:find("^spank_") and name ~= "environment" then
         for _, filling in ipairs(FILLINGS) do
            tell(name .. " of " .. filling, { [name] = filled(filling) })
         end
      end
   end
   local long = filled(",")
   tell("comment, words first", { comment = "pliant:gpus=1-4 " .. long })
   tell("comment, words alone", { comment = "pliant:" .. long })
   tell("option", { spank_job_env = { [0] = FLAG .. long } })
   tell("option's name", { spank_job_env = { [0] = SPANK .. filled("a") .. "=1" } })
   tell("entries", { spank_job_env = entries, spank_job_env_size = 10 ^ 6 })
end
