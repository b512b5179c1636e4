-- Pliant's submit filter for Slurm, as a module that a site's own job_submit.lua requires:
--
--     local ok, pliant = pcall(require, "pliant")
--     if ok then pliant.setup{socket = "/run/pliant/pliantd.sock"} end
--     ...
--     function slurm_job_submit(job_desc, part_list, submit_uid)
--        -- the site's own rules first; then
--        return ok and pliant.job_submit(job_desc, part_list, submit_uid) or slurm.SUCCESS
--     end
--
-- It runs under slurmctld's locks, so it is made to hurt nobody:
--   * a job that says nothing to Pliant costs two field reads and is left as it is;
--   * pliantd is asked once, within 50 ms for the whole exchange; after a failure nobody is asked
--     for some seconds;
--   * an error in here accepts the job as it was written;
--   * without luasocket or pliantd only the token is written: pliantd finds the job later.
--
-- The protocol is that of pliant.wire (one line each way, other bytes than A-Za-z0-9_.- as %XX),
-- the token that of pliant.grammar.token. Lua 5.1 to 5.4; only luasocket beside it.

local M = {}

local LIMIT_S = 0.05 -- the longest that one submission may be held up
local MAX_REQUEST = 200 * 1024
local MAX_ANSWER = 64 * 1024
local MAX_WORDS = 4096
local NO_VAL = 4294967294 -- slurm.h; one more is "no limit"

local SPANK = "_SLURM_SPANK_OPTION_pliant_"
local COMMENT = "pliant:"
local TOKEN = "pliant=v1:"

-- --job-class would make sbatch's --job= ambiguous: the SPANK plugin calls it --class.
local OF_SPANK = { class = "job-class" }
local SPANK_OF = { ["job-class"] = "class" }

-- The order in which the token names them.
local OPTIONS = { "moldable", "malleable", "job-class", "throughput", "steps", "colocate" }
local MOLDABLE_KEYS = {
   gpus = true, nodes = true, type = true, cores = true, ["gpu-type"] = true, ["gpu-mem"] = true,
}

-- What pliantd is told of a job that says something, under job_desc's own names: what it reads, no
-- more, as reading a field is slow and submissions that ask the same are answered alike.
local TEXTS = {
   "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket", "cpus_per_tres",
   "mem_per_tres", "partition", "features", "reservation", "array_inx", "dependency", "req_nodes",
   "exc_nodes", "licenses", "qos", "default_qos", "clusters",
}
local NUMBERS = {
   "min_nodes", "max_nodes", "num_tasks", "cpus_per_task", "min_cpus", "pn_min_cpus",
   "min_mem_per_node", "min_mem_per_cpu", "ntasks_per_node", "ntasks_per_tres",
   "shared", "contiguous", "reboot", "het_job_offset", "time_limit", "begin_time", "priority",
   "ntasks_per_socket", "ntasks_per_core", "sockets_per_node", "cores_per_socket",
   "threads_per_core", "core_spec", "pn_min_tmp_disk",
   "requeue",
}

-- What pliantd may change.
local MAY_SET = {
   gres = "text", tres_per_node = "text", tres_per_job = "text", tres_per_task = "text",
   cpus_per_tres = "text", mem_per_tres = "text",
   min_nodes = "number", max_nodes = "number", num_tasks = "number", cpus_per_task = "number",
   min_cpus = "number", pn_min_cpus = "number", min_mem_per_node = "number",
   ntasks_per_node = "number", ntasks_per_tres = "number", time_limit = "number",
   time_min = "number", shared = "number", requeue = "number",
}

local settings = {
   socket = os.getenv("PLIANT_SOCKET") or "/run/pliant/pliantd.sock",
   timeout = LIMIT_S,
   breaker = 5,
}

local breaker_since -- when an exchange last failed

-- When a job was last submitted that pliantd was not told of: it may have what seemed free.
local untold_since
local UNTOLD_S = 10 -- for how long that is said: pliantd takes it so

--- Encodings ---------------------------------------------------------------------------------

local function escape(text)
   return (text:gsub("[^A-Za-z0-9_.%-]", function(c)
      return string.format("%%%02X", c:byte())
   end))
end

local function unescape(text)
   return (text:gsub("%%(%x%x)", function(hex)
      return string.char(tonumber(hex, 16))
   end))
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

-- RFC 4648, section 5.
local function base64url(text)
   local function sign(index)
      return ALPHABET:sub(index + 1, index + 1)
   end
   local out = {}
   for at = 1, #text, 3 do
      local a, b, c = text:byte(at, at + 2)
      local bits = a * 65536 + (b or 0) * 256 + (c or 0)
      out[#out + 1] = sign(math.floor(bits / 262144))
      out[#out + 1] = sign(math.floor(bits / 4096) % 64)
      out[#out + 1] = b and sign(math.floor(bits / 64) % 64) or "="
      out[#out + 1] = c and sign(bits % 64) or "="
   end
   return table.concat(out)
end

-- RFC 1950, section 8.2.
local function adler32(text)
   local a, b = 1, 0
   for at = 1, #text do
      a = (a + text:byte(at)) % 65521
      b = (b + a) % 65521
   end
   return string.format("%04x%04x", b, a)
end

local function token_of(words)
   return TOKEN .. base64url(words) .. ":" .. adler32(words)
end

-- AdminComment with our token in place of the old ones; other words stay as they are.
local function with_token(admin_comment, token)
   local words = {}
   for word in (admin_comment .. " "):gmatch("([^ ]*) ") do
      if word:sub(1, #TOKEN) ~= TOKEN then
         words[#words + 1] = word
      end
   end
   words[#words + 1] = token
   return (table.concat(words, " "):gsub("^ +", ""))
end

--- What the owner said -----------------------------------------------------------------------

-- The SPANK options by name, or nil. SPANK writes "-" as "_".
local function flags_of(job_desc)
   local size = job_desc.spank_job_env_size
   if not size or size == 0 then
      return nil
   end
   local env, found = job_desc.spank_job_env, nil
   for at = 0, size - 1 do
      local entry = env and env[at]
      if entry and entry:sub(1, #SPANK) == SPANK then
         local name, value = entry:sub(#SPANK + 1):match("^([a-z_]+)=(.*)$")
         if name then
            found = found or {}
            name = name:gsub("_", "-")
            found[OF_SPANK[name] or name] = value == "(null)" and "" or value
         end
      end
   end
   return found
end

-- The words after "pliant:" at the start of the comment, or nil.
local function said_in(comment)
   if not comment or comment:sub(1, #COMMENT) ~= COMMENT then
      return nil
   end
   return comment:match("^%s*(%S*)", #COMMENT + 1)
end

-- Both together in one form, or nil where they cannot be right; the flags win, option by option.
-- Only pliantd knows the grammar: here it is looked after that nothing else gets into the token.
local function words_of(said, flags)
   local values = {}
   local first = true
   for word in ((said or "") .. ";"):gmatch("([^;]*);") do
      local option, equals, value = word:match("^([a-z-]+)(=?)(.*)$")
      if said and first and option and MOLDABLE_KEYS[option] then
         option, equals, value = "moldable", "=", word
      end
      first = false
      if said and (not option or (equals == "" and value ~= "") or values[option]) then
         return nil
      elseif said then
         values[option] = value
      end
   end
   for option, value in pairs(flags or {}) do
      values[option] = value
   end
   local words = {}
   for _, option in ipairs(OPTIONS) do
      local value = values[option]
      if value then
         if #value > MAX_WORDS or value:find("[^A-Za-z0-9=,:+./_@-]") then
            return nil
         end
         words[#words + 1] = value == "" and option or option .. "=" .. value
         values[option] = nil
      end
   end
   if next(values) or #words == 0 then
      return nil
   end
   return table.concat(words, ";")
end

--- Asking pliantd ----------------------------------------------------------------------------

-- Only trial jobs are counted by user: to say whose a job is would make alike ones differ.
local function is_trial(said, flags)
   local class = flags and flags["job-class"] or (said or ""):match("job%-class=([%w-]+)")
   return class == "trial"
end

local function request_of(job_desc, said, flags)
   local pairs_ = {}
   local function add(name, value)
      pairs_[#pairs_ + 1] = name .. "=" .. escape(value)
   end
   if said then
      add("comment", COMMENT .. said)
   end
   for option, value in pairs(flags or {}) do
      add("option." .. escape(option), value)
   end
   for _, name in ipairs(TEXTS) do
      local value = job_desc[name]
      if value and value ~= "" then
         add(name, value)
      end
   end
   local user = is_trial(said, flags) and job_desc.user_name
   if user and user ~= "" then
      add("user_name", user)
   end
   for _, name in ipairs(NUMBERS) do
      local value = job_desc[name]
      if type(value) == "number" and value >= 0 and value < NO_VAL then
         add(name, string.format("%.0f", value))
      end
   end
   add("batch", job_desc.script and "1" or "0")
   local since = untold_since and os.time() - untold_since
   if since and since >= 0 and since < UNTOLD_S then
      add("since", string.format("%.0f", since))
   end
   return "submit " .. table.concat(pairs_, "&") .. "\n"
end

local function stream()
   local unix = require("socket.unix")
   if type(unix) == "table" and unix.stream then
      return unix.stream()
   end
   return unix()
end

-- One line out, one line in; nil and why where that does not end within the limit. luasocket's
-- total time limit holds for one call, so each gets what the calls before it have left.
local function exchange(line)
   local has_core, core = pcall(require, "socket.core")
   local clock = has_core and core.gettime or nil
   local limit = math.min(settings.timeout, LIMIT_S)
   local ends = clock and clock() + limit
   local connection = stream()
   local function call(method, ...)
      local left = ends and ends - clock() or limit / 3
      if left <= 0 then
         return nil, "timeout"
      end
      connection:settimeout(left, "t")
      return connection[method](connection, ...)
   end
   local done, why = call("connect", settings.socket)
   if done then
      done, why = call("send", line)
   end
   local answer
   if done then
      answer, why = call("receive", "*l")
   end
   connection:close()
   return answer, why
end

-- The fields of an answer, or nil where it is not an answer that is understood.
local function fields_of(answer)
   if not answer or #answer > MAX_ANSWER or not (answer .. " "):match("^ok ") then
      return nil
   end
   local fields = {}
   for pair in answer:sub(4):gmatch("[^&]+") do
      local name, value = pair:match("^([%w_.-]+)=([%w_.%%-]*)$")
      if not name then
         return nil
      end
      fields[name] = unescape(value)
   end
   return fields
end

-- Whether nobody is to be asked now. A clock that was set back closes the breaker.
local function is_open(now)
   return breaker_since and now >= breaker_since and now < breaker_since + settings.breaker
end

local function ask(line)
   local now = os.time()
   if #line > MAX_REQUEST or is_open(now) then
      return nil
   end
   local fine, answer, why = pcall(exchange, line)
   local fields = fine and fields_of(answer) or nil
   if fields then
      breaker_since = nil
      return fields
   end
   breaker_since = now
   why = not fine and answer or why or "its answer is not understood"
   slurm.log_info("%s", "pliant: " .. settings.socket .. ": " .. tostring(why) ..
      ": jobs are accepted as they are written")
   return nil
end

--- Applying ----------------------------------------------------------------------------------

local function say(text)
   for line in (text .. "\n"):gmatch("([^\n]*)\n") do
      if line ~= "" then
         slurm.log_user("%s", line) -- it formats
      end
   end
end

-- The changes, in an order that is always the same, or nil where one is not known here.
local function changes_of(fields)
   local changes = {}
   for name, value in pairs(fields) do
      local field = name:match("^set%.(.+)$")
      if field then
         local kind = MAY_SET[field]
         if kind == "number" then
            value = value:match("^%d+$") and tonumber(value)
         end
         if not kind or not value then
            return nil
         end
         changes[#changes + 1] = { field, value }
      end
   end
   table.sort(changes, function(one, other) return one[1] < other[1] end)
   return changes
end

local function asks_for_gpu(job_desc)
   for _, name in ipairs({ "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket" }) do
      local value = job_desc[name]
      if value and (value:find("gpu", 1, true) or value:find("shard", 1, true)) then
         return true
      end
   end
   return false
end

-- pliantd is not there: note what was said, and change nothing else.
local function note_only(job_desc, said, flags)
   local words = words_of(said, flags)
   if not words then
      say("pliant: not available now, and what was said to it is not understood:"
         .. " the job is submitted as written")
      return
   end
   job_desc.admin_comment = with_token(job_desc.admin_comment or "", token_of(words))
   local moldable = words:match("^moldable=([^;]*)")
   if moldable and (moldable:find("gpus=", 1, true) or moldable:find("gpu-type=", 1, true))
      and not moldable:find("cpu", 1, true) and not asks_for_gpu(job_desc) then
      say("pliant: not available now, and this job asks for no GPU beside --moldable:"
         .. " it keeps the request as written; add --gres=gpu:N to say what it should run"
         .. " with then")
   end
end

local function apply(job_desc, fields)
   if fields.refuse then
      say(fields.refuse)
      return slurm.ERROR
   end
   local changes = changes_of(fields)
   local token = fields.token
   if not changes or (token and not token:match("^pliant=v1:[%w_=-]*:%x+$")) then
      slurm.log_info("%s", "pliant: an answer is not one that this module knows:"
         .. " are pliant.lua and pliantd of one version?")
      return slurm.SUCCESS
   end
   for _, change in ipairs(changes) do
      job_desc[change[1]] = change[2]
   end
   if token then
      job_desc.admin_comment = with_token(job_desc.admin_comment or "", token)
   end
   if fields.say then
      say(fields.say)
   end
   return slurm.SUCCESS
end

-- The SPANK plugin on the node learns the flags from the job's environment, where sbatch leaves
-- them unless --export keeps them out, and knows nothing of comments. Say there what is missing, so
-- that the job finds PLIANT_* and true sizes. srun and salloc bring no environment.
local function tell_node(job_desc, said, flags)
   local words = job_desc.script and words_of(said, flags)
   local environment = words and job_desc.environment
   if not environment then
      return
   end
   for word in (words .. ";"):gmatch("([^;]+);") do
      local option, value = word:match("^([^=]+)=?(.*)$")
      local name = SPANK .. (SPANK_OF[option] or option)
      if environment[name] == nil then
         environment[name] = value
      end
   end
end

local function submit(job_desc)
   local flags = flags_of(job_desc)
   local said = said_in(job_desc.comment)
   if not flags and not said then
      untold_since = os.time()
      return slurm.SUCCESS
   end
   pcall(tell_node, job_desc, said, flags)
   local fields = ask(request_of(job_desc, said, flags))
   if fields and not fields.away then
      return apply(job_desc, fields)
   end
   untold_since = os.time()
   note_only(job_desc, said, flags)
   return slurm.SUCCESS
end

--- The module --------------------------------------------------------------------------------

--- Set the socket's path, the time limit in seconds (at most 0.05), and for how many seconds
-- nobody is asked after a failure.
function M.setup(options)
   options = type(options) == "table" and options or {}
   if type(options.socket) == "string" then
      settings.socket = options.socket
   end
   if type(options.timeout) == "number" and options.timeout > 0 then
      settings.timeout = options.timeout
   end
   if type(options.breaker) == "number" and options.breaker >= 0 then
      settings.breaker = options.breaker
   end
   return M
end

--- Look at a submission: slurm.SUCCESS accepts it, slurm.ERROR refuses it.
function M.job_submit(job_desc, _part_list, _submit_uid)
   local fine, result = pcall(submit, job_desc)
   if fine then
      return result
   end
   pcall(slurm.log_error, "%s", "pliant: " .. tostring(result) .. ": the job is accepted")
   return slurm.SUCCESS
end

--- Updates are left alone: a job that its owner changes is not changed by Pliant any more.
function M.job_modify(_job_desc, _job_rec, _part_list, _submit_uid)
   return slurm.SUCCESS
end

-- For tests.
M.adler32, M.base64url, M.escape, M.unescape = adler32, base64url, escape, unescape
M.with_token, M.words_of = with_token, words_of

return M
