-- A small stand-in for slurmctld's job_submit/lua: job descriptors whose reads and writes are told,
-- formatting log functions. Arguments: what to load ("module" or a job_submit.lua), then a Lua file
-- that returns a list of steps. Where that has a door, luasocket is a fake one in front of it, and
-- what that has cost is told after each step. Where it has patience, the real luasocket's time runs
-- so many times slower, so that a busy machine changes nothing. Prints one line for each thing that
-- happened, as KIND TEXT.
local what, steps_file = arg[1], arg[2]

local function told(kind, text)
   print(kind .. " " .. tostring(text):gsub("[^\32-\126]", function(c)
      return string.format("\\%d", c:byte())
   end))
end

slurm = {
   SUCCESS = 0, ERROR = -1,
   log_user = function(...) told("user", string.format(...)) end,
   log_info = function(...) told("info", string.format(...)) end,
   log_error = function(...) told("error", string.format(...)) end,
}

local function job_desc(fields, broken, unset)
   return setmetatable({}, {
      __index = function(_, name)
         told("read", name)
         if name == broken then error("cannot read " .. name) end
         return fields[name]
      end,
      __newindex = function(_, name, value)
         if name == unset then error("cannot set " .. name) end
         told("set", name .. "=" .. tostring(value))
         fields[name] = value
      end,
   })
end

local function submit(step)
   if what == "module" then
      local described = job_desc(step.fields, step.broken, step.unset)
      return require("pliant").job_submit(described, step.parts or {}, 1000)
   end
   local described = job_desc(step.fields, step.broken, step.unset)
   local fine, code = pcall(slurm_job_submit, described, {}, 1000)
   if not fine then -- as Slurm before 25.11; from then on it refuses the job
      told("error", "slurm_job_submit failed: " .. (type(code) == "string" and code or type(code)))
      return slurm.SUCCESS
   end
   return code
end

local function slow_down(patience)
   local has_unix, unix = pcall(require, "socket.unix")
   if not has_unix then
      return
   end
   local stream = type(unix) == "table" and unix.stream or unix
   local has_core, core = pcall(require, "socket.core")
   if has_core then
      local clock = core.gettime
      local began = clock()
      core.gettime = function() return began + (clock() - began) / patience end
   end
   local function patient()
      local connection = stream()
      local function same(name)
         return function(_, ...) return connection[name](connection, ...) end
      end
      return {
         settimeout = function(_, limit, mode) connection:settimeout(limit * patience, mode) end,
         connect = same("connect"), send = same("send"), receive = same("receive"),
         close = same("close"),
      }
   end
   package.loaded["socket.unix"] = {stream = patient}
end

local steps = dofile(steps_file)
for name in pairs(steps.missing or {}) do
   package.preload[name] = function() error("no module " .. name) end
end
if steps.patience then
   slow_down(steps.patience)
end
steps.wait = function() end
if steps.clock then
   local now = steps.clock
   rawset(os, "time", function() return now end)
   steps.wait = function(s) now = now + s end
end
local spent
if steps.door then
   spent = dofile(arg[0]:match("^.*/") .. "fake_luasocket.lua")(steps.door)
end
if what == "module" then
   require("pliant").setup(steps.setup)
else
   dofile(what)
   told("modify", slurm_job_modify({}, {}, {}, 0))
end
for _, step in ipairs(steps) do
   if step.wait then steps.wait(step.wait) end
   if step.call then step.call(told) end
   if step.fields then told("rc", submit(step)) end
   if spent then told("spent", spent()) end
end
