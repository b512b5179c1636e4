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
--     for some seconds; a connection serves the next submission too, but none that failed, or on
--     which more was said than the one answer;
--   * a text is measured before anything else is done with it: Slurm hands over 10 MB too;
--   * an error in here accepts the job as it was written;
--   * without luasocket or pliantd the token is written, and what nobody could change later is said
--     per node, which is the same: pliantd finds the job later.
--
-- The protocol is that of pliant.wire (one line each way, other bytes than A-Za-z0-9_.- as %XX),
-- the token that of pliant.grammar.token. Lua 5.1 to 5.4; only luasocket beside it.

local M = {}

local LIMIT_S = 0.05 -- the longest that one submission may be held up
local MAX_ANSWER = 64 * 1024
local MAX_WORDS = 4096 -- bytes in a token, as in pliant.grammar
local NO_VAL16, NO_VAL = 65534, 4294967294 -- slurm.h: not set; one more is "no limit"

-- The most bytes of one text that pliantd is told, and of all. Slurm (22.05 to 26.05) refuses most
-- of these texts above the same length (measured), but only after job_submit has run.
local MAX_TEXT = 1024
local MAX_ARRAY = 4096
local MAX_TEXTS = 16 * 1024

local MAX_SPANK_ENTRIES = 4096
local MAX_OPTIONS = 32 -- different ones that one job says; pliantd takes 256 fields in all
local MAX_NAME = 32 -- bytes in the name of an option
local MAX_ADMIN_COMMENT = 16 * 1024 -- the most that is searched for old tokens

local SPANK = "_SLURM_SPANK_OPTION_pliant_"
local COMMENT = "pliant:"
local TOKEN = "pliant=v1:"
local UNANSWERED = "pliant-unanswered=1" -- stands beside the token: pliantd counts such jobs

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

-- Numbers that are not set as NO_VAL; the others have 16 bits.
local BITS32 = {
   min_nodes = true, max_nodes = true, num_tasks = true, het_job_offset = true,
   pn_min_tmp_disk = true, min_mem_per_node = true, min_mem_per_cpu = true, min_cpus = true,
   time_limit = true, begin_time = true, priority = true,
}

-- pliantd uses only that these are there. They may be long: Slurm takes 120,000 bytes of most.
local PRESENCE = { dependency = true, req_nodes = true, exc_nodes = true, licenses = true }

-- How users write what has another name in job_desc.
local OPTION_OF = {
   tres_per_node = "--gres", tres_per_job = "--gpus", tres_per_task = "--gpus-per-task",
   tres_per_socket = "--gpus-per-socket", cpus_per_tres = "--cpus-per-gpu",
   mem_per_tres = "--mem-per-gpu", features = "--constraint", array_inx = "--array",
   default_qos = "--qos",
}

-- What pliantd may change: "text", or the largest number that the field holds (slurm.h: NO_VAL16,
-- NO_VAL; memory has 64 bits, of which Lua 5.1 keeps 53).
local MAY_SET = {
   gres = "text", tres_per_node = "text", tres_per_job = "text", tres_per_task = "text",
   cpus_per_tres = "text", mem_per_tres = "text",
   min_nodes = NO_VAL, max_nodes = NO_VAL, num_tasks = NO_VAL, cpus_per_task = 65534,
   min_cpus = NO_VAL, pn_min_cpus = 65534, min_mem_per_node = 2 ^ 53 - 1,
   ntasks_per_node = 65534, ntasks_per_tres = 65534, time_limit = NO_VAL,
   time_min = NO_VAL, shared = 65534, requeue = 65534,
}

local settings = {
   socket = os.getenv("PLIANT_SOCKET") or "/run/pliant/pliantd.sock",
   timeout = LIMIT_S,
   breaker = 5,
}

local breaker_since -- when an exchange last failed
local connected -- by the last one that went well

-- Whether slurm.conf limits memory for all partitions, as pliantd last said, or slurm.conf itself
-- before; nil: not looked yet. Lua sees only the partitions' own limits.
local limits_memory

-- When a job was last submitted that pliantd was not told of: it may have what seemed free.
local untold_since
local UNTOLD_S = 10 -- for how long that is said: pliantd takes it so

--- Encodings ---------------------------------------------------------------------------------

-- Tables: gsub calls a function once for each byte, at 0.3 us.
local ESCAPED, UNESCAPED = {}, {}
for byte = 0, 255 do
   local char, hex = string.char(byte), string.format("%02X", byte)
   ESCAPED[char] = "%" .. hex
   UNESCAPED[hex], UNESCAPED[hex:lower()] = char, char
end

local function escape(text)
   return (text:gsub("[^A-Za-z0-9_.%-]", ESCAPED))
end

local function unescape(text)
   return (text:gsub("%%(%x%x)", UNESCAPED))
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

-- AdminComment with our token in place of the old ones; other words stay as they are. A very long
-- one is kept as it is behind our token: pliantd takes the first.
local function with_token(admin_comment, token)
   if #admin_comment > MAX_ADMIN_COMMENT then
      return token .. " " .. admin_comment
   end
   local words = {}
   for word in (admin_comment .. " "):gmatch("([^ ]*) ") do
      if word:sub(1, #TOKEN) ~= TOKEN and word ~= UNANSWERED then
         words[#words + 1] = word
      end
   end
   words[#words + 1] = token
   return (table.concat(words, " "):gsub("^ +", ""))
end

--- What the owner said -----------------------------------------------------------------------

-- The name and the value of an option of ours, or nil.
local function option_in(entry)
   if entry:sub(1, #SPANK) ~= SPANK then
      return nil
   end
   local name = entry:sub(#SPANK + 1, #SPANK + MAX_NAME + 1):match("^([a-z_]+)=")
   if name then
      local value = entry:sub(#SPANK + #name + 2)
      name = name:gsub("_", "-")
      return OF_SPANK[name] or name, value == "(null)" and "" or value
   end
end

-- The SPANK options by name, or nil. SPANK writes "-" as "_". Where there are more of them than any
-- job has, none is read: false.
local function flags_of(job_desc)
   local size = job_desc.spank_job_env_size
   if not size or size == 0 then
      return nil
   elseif size > MAX_SPANK_ENTRIES then
      return false
   end
   local env, found, count = job_desc.spank_job_env, nil, 0
   for at = 0, size - 1 do
      local entry = env and env[at]
      local name, value
      if entry then
         name, value = option_in(entry)
      end
      if name then
         found = found or {}
         count = count + (found[name] and 0 or 1)
         found[name] = value
      end
   end
   return count <= MAX_OPTIONS and found
end

-- The words after "pliant:" at the start of the comment, or nil; the start of very long ones.
local function said_in(comment)
   if not comment or comment:sub(1, #COMMENT) ~= COMMENT then
      return nil
   end
   return comment:sub(#COMMENT + 1, #COMMENT + MAX_WORDS + 1):match("^%s*(%S*)")
end

-- Both together in one form, or nil where they cannot be right; the flags win, option by option.
-- Only pliantd knows the grammar: here it is looked after that nothing else gets into the token.
local function words_of(said, flags)
   local values = {}
   local first = true
   for word in ((said or "") .. ";"):gmatch("([^;]*);") do
      local option, equals, value = word:match("^([a-z-]+)(=?)(.*)$")
      if said and first and equals == "=" and MOLDABLE_KEYS[option] then
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
   local text = table.concat(words, ";")
   if next(values) or #words == 0 or #text > MAX_WORDS then
      return nil
   end
   return text
end

--- Asking pliantd ----------------------------------------------------------------------------

-- A number that was asked for, or nil.
local function asked(job_desc, name)
   local value = job_desc[name]
   local none = BITS32[name] and NO_VAL or NO_VAL16
   return type(value) == "number" and value >= 0 and value < none and value or nil
end

-- Only trial jobs are counted by user: to say whose a job is would make alike ones differ.
local function is_trial(said, flags)
   local class = flags and flags["job-class"] or (said or ""):match("job%-class=([%w-]+)")
   return class == "trial"
end

-- What the owner wrote, as pairs of a name and a text; and which of them is too long for pliantd,
-- or nil. A text is read only where those before it are short enough.
local function texts_of(job_desc, said, flags)
   local found, left = {}, MAX_TEXTS
   local function too_long(name, text, option)
      local most = name == "array_inx" and MAX_ARRAY or MAX_TEXT
      left = left - #name - #text
      found[#found + 1] = { name, text }
      if #text > most then
         return option .. " has more than the " .. most .. " bytes that Pliant reads"
      elseif left < 0 then
         return "with " .. option .. " the request has more than the " .. MAX_TEXTS
            .. " bytes that Pliant reads"
      end
   end
   local why = said and too_long("comment", COMMENT .. said, "--comment")
   for option, value in pairs(flags or {}) do
      why = why or too_long("option." .. option, value, "--" .. (SPANK_OF[option] or option))
   end
   for _, name in ipairs(TEXTS) do
      local text = not why and job_desc[name]
      if text and text ~= "" then
         text = PRESENCE[name] and "1" or text
         why = too_long(name, text, OPTION_OF[name] or "--" .. name)
      end
   end
   return found, why
end

-- The line to ask, or nil and which text is too long.
local function request_of(job_desc, said, flags)
   local texts, too_long = texts_of(job_desc, said, flags)
   if too_long then
      return nil, too_long
   end
   local pairs_ = {}
   local function add(name, value)
      pairs_[#pairs_ + 1] = name .. "=" .. escape(value)
   end
   for _, text in ipairs(texts) do
      add(text[1], text[2])
   end
   local user = is_trial(said, flags) and job_desc.user_name
   if user and user ~= "" then
      add("user_name", user)
   end
   for _, name in ipairs(NUMBERS) do
      local value = asked(job_desc, name)
      if value then
         pairs_[#pairs_ + 1] = string.format("%s=%.0f", name, value)
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

local function hang_up()
   if connected then
      connected:close()
      connected = nil
   end
end

-- Whether the last submission left a connection on which nothing was said since: what comes next is
-- the answer to this one. pliantd closes it after some seconds, or some lines.
local function is_connected()
   if connected then
      connected:settimeout(0, "t")
      local _, why = connected:receive(1)
      if why ~= "timeout" then
         hang_up()
      end
   end
   return connected ~= nil
end

-- What calls the connection's methods until the limit is over, and whether there is a clock.
-- luasocket's total time limit holds for one call, so each gets what the calls before it have left.
local function within_limit()
   local has_core, core = pcall(require, "socket.core")
   local clock = has_core and core.gettime or nil
   local limit = math.min(settings.timeout, LIMIT_S)
   local ends = clock and clock() + limit
   return function(method, ...)
      local left = ends and ends - clock() or limit / 3
      if left <= 0 then
         return nil, "timeout"
      end
      connected:settimeout(left, "t")
      return connected[method](connected, ...)
   end, clock ~= nil
end

-- One line out, one line in; nil and why where that does not end within the limit.
local function exchange(line)
   local call, has_clock = within_limit()
   local function said_back()
      local done, why = call("send", line)
      if not done then
         return nil, why
      end
      return call("receive", "*l")
   end
   local answer, why = nil, "closed"
   if is_connected() then
      answer, why = said_back()
   end
   if why == "closed" then -- or it was only now
      hang_up()
      connected = stream()
      local done
      done, why = call("connect", settings.socket)
      if done then
         answer, why = said_back()
      end
   end
   if not has_clock then -- five calls could take longer than the limit
      hang_up()
   end
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
   if is_open(now) then
      return nil
   end
   local fine, answer, why = pcall(exchange, line)
   local fields = fine and fields_of(answer) or nil
   if fields then
      breaker_since = nil
      return fields
   end
   breaker_since = now
   hang_up()
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

-- A value as its field takes it, or nil. Sixteen digits are more than any field holds.
local function value_for(kind, text)
   if kind == "text" then
      return #text <= MAX_TEXT and text or nil
   end
   local number = #text <= 16 and text:match("^%d+$") and tonumber(text)
   return number and number <= kind and number or nil
end

-- The changes, the token among them, in an order that is always the same, or nil where one is not
-- known here. Memory comes last: where it is not set, only that cannot be put back.
local function changes_of(job_desc, fields)
   local token = fields.token
   if token and not token:match("^pliant=v1:[%w_=-]*:%x+$") then
      return nil
   end
   local changes = {}
   for name, text in pairs(fields) do
      local field = name:match("^set%.(.+)$")
      local kind = MAY_SET[field or ""]
      local value = kind and value_for(kind, text)
      if value then
         changes[#changes + 1] = { field, value }
      elseif field then
         return nil
      end
   end
   if token then
      local admin_comment = with_token(job_desc.admin_comment or "", token)
      changes[#changes + 1] = { "admin_comment", admin_comment }
   end
   local function rank(change)
      return (change[1] == "min_mem_per_node" and "1" or "0") .. change[1]
   end
   table.sort(changes, function(one, other) return rank(one) < rank(other) end)
   return changes
end

-- Put back what stood there, the last first. "" clears a text. Slurm puts a prefix before what is
-- written to gres, which is tres_per_node.
local function put_back(job_desc, before)
   for at = #before, 1, -1 do
      local field, value = before[at][1], before[at][2]
      pcall(function()
         job_desc[field == "gres" and "tres_per_node" or field] = value
      end)
   end
end

-- Make all of the changes or none.
local function set_all(job_desc, changes)
   local before = {}
   local fine, why = pcall(function()
      for _, change in ipairs(changes) do
         local field, value = change[1], change[2]
         local old = job_desc[field]
         job_desc[field] = value
         before[#before + 1] = { field, old == nil and type(value) == "string" and "" or old }
      end
   end)
   if not fine then
      put_back(job_desc, before)
      error(why, 0)
   end
end

local function asks_for_gpu(job_desc)
   for _, name in ipairs({ "tres_per_node", "tres_per_job", "tres_per_task", "tres_per_socket" }) do
      local value = job_desc[name]
      if value and (#value > MAX_TEXT or value:find("gpu", 1, true)
         or value:find("shard", 1, true)) then
         return true
      end
   end
   return false
end

--- Limits of memory ---------------------------------------------------------------------------

-- Whether a partition that a job names, or the default one, has MaxMemPerCPU or MaxMemPerNode, or
-- gives whole nodes (OverSubscribe=EXCLUSIVE): there memory by the GPU is that of all their GPUs.
local function has_limit(job_desc, part_list)
   local named = job_desc.partition
   for name, part in pairs(type(part_list) == "table" and part_list or {}) do
      local is_its = named and ("," .. named .. ","):find("," .. name .. ",", 1, true)
         or (not named and (tonumber(part.flag_default) or 0) ~= 0)
      if is_its and ((part.max_mem_per_cpu or 0) > 0 or (part.max_mem_per_node or 0) > 0
         or part.max_share == 0) then
         return true
      end
   end
   return false
end

-- Whether slurm.conf limits memory for all partitions; also where that cannot be told.
local function has_limit_for_all()
   local conf = io.open(os.getenv("SLURM_CONF") or "/etc/slurm/slurm.conf")
   if not conf then
      return true
   end
   local found = false
   for line in conf:lines() do
      local said = line:lower()
      local most = said:match("^%s*maxmemper[a-z]+%s*=%s*(%d+)")
      found = found or said:match("^%s*include%s") ~= nil or (tonumber(most) or 0) > 0
   end
   conf:close()
   return found
end

-- Learn of a limit that holds in the job's partitions and is not their own.
local function learn_limit(job_desc, part_list, fields)
   local fine, own = pcall(has_limit, job_desc, part_list)
   if fine and not own and (fields.mem_limit or not fields.away) then
      limits_memory = fields.mem_limit ~= nil
   end
end

--- A form that can be changed later ----------------------------------------------------------

-- What --ntasks-per-node, --gpus-per-task, --cpus-per-gpu and --mem-per-gpu ask of a waiting job is
-- changed by other calls on each release, if at all. Where the request alone says what they come to
-- on each node, it is said per node: the same GPUs, tasks, CPUs and memory. The rule is that of
-- pliant.filter.normal, without what only pliantd knows of the cluster; tests/assets/forms.json
-- holds both to it. What is not understood here stays as it was written.

-- Layouts of which no more is known here than that they were asked for.
local LEFT = {
   "het_job_offset", "ntasks_per_socket", "ntasks_per_core", "sockets_per_node",
   "cores_per_socket", "threads_per_core", "core_spec", "pn_min_tmp_disk", "contiguous", "reboot",
}
local function has_text(job_desc, name)
   local value = job_desc[name]
   return value and value ~= ""
end

local function stays(job_desc)
   for _, name in ipairs(LEFT) do
      local value = asked(job_desc, name)
      if value and (value > 0 or name == "het_job_offset") then
         return true
      end
   end
   local shared = asked(job_desc, "shared")
   return not job_desc.script or (shared and shared ~= 1)
      or has_text(job_desc, "reservation") or has_text(job_desc, "tres_per_socket")
      or asked(job_desc, "min_mem_per_node") == 0
      or (asked(job_desc, "pn_min_cpus") or 0) > (asked(job_desc, "cpus_per_task") or 1)
end

-- What a list says that names GPUs alone: {prefix, type, count}, or nil.
local function gpus_of(text)
   local prefix, rest = text:match("^(gres[:/])gpu(.*)$")
   if not prefix then
      prefix, rest = "", text:match("^gpu(.*)$")
   end
   local type_, count = (rest or "-"):match("^[:=]?([^:=]*)[:=]?(%d*)$")
   if not type_ then
      return nil
   elseif type_:match("^%d+$") and count == "" then
      type_, count = "", type_
   end
   count = count == "" and 1 or tonumber(count)
   if (type_ ~= "" and not type_:match("^%w[%w._-]*$")) or count < 1 or count > 1000000 then
      return nil
   end
   return { prefix = prefix, type = type_, count = count }
end

-- From 23.11 on --cpus-per-task stands beside the GPUs of a task, or alone.
local function without_cpus(text)
   local cpus, rest = text:match("^cpu[:=](%d+),?(.*)$")
   if not cpus then
      rest, cpus = text:match("^(.+),cpu[:=](%d+)$")
   end
   return rest or text, cpus and "cpu=" .. cpus or ""
end

-- The one way in which GPUs are asked for, and its name; nil where there are several, or none.
local function gpus_asked(job_desc)
   local found, way, rest
   for _, name in ipairs({ "node", "job", "task" }) do
      local text, kept = without_cpus(job_desc["tres_per_" .. name] or "")
      if text ~= "" then
         local gpus = gpus_of(text)
         if found or not gpus or (kept ~= "" and name ~= "task") then
            return nil
         end
         found, way, rest = gpus, name, kept
      end
   end
   return found, way, rest
end

-- Nodes and tasks of each node; nil for what is not one number. Slurm gives 5 + 3 where only the
-- total is said.
local function layout_of(job_desc)
   local least, most = asked(job_desc, "min_nodes"), asked(job_desc, "max_nodes")
   local count, each = asked(job_desc, "num_tasks"), asked(job_desc, "ntasks_per_node")
   local nodes = least and least > 0 and least == most and least or nil
   if each == 0 then
      return nodes, nil
   elseif each then
      local fits = nodes and nodes * each or (not least and not most and each)
      return nodes, fits and (count == nil or count == fits) and each or nil
   elseif count == nil or count == (nodes or 1) then
      return nodes, 1
   end
   return nodes, nodes == 1 and count or nil
end

-- What is asked for each GPU: so much on a node, and for one; nil where that is not known.
local function per_gpu(job_desc, name, gpus)
   if not has_text(job_desc, name) then
      return 0, 0
   end
   local each = gpus_of(job_desc[name])
   if not each or each.type ~= "" then
      return nil
   end
   return each.count * gpus, each.count
end

local function gres_text(gpus, count)
   return string.format("gpu:%s%d", gpus.type ~= "" and gpus.type .. ":" or "", count)
end

-- --gpus-per-task without a number of nodes: Slurm may spread the tasks. In total, with one task to
-- a GPU, it spreads them alike from 24.11 on, which has -c in `kept`; 22.05 lays 3 + 1 tasks where
-- 2 + 2 GPUs are free (measured). Only beside -c: DefCpuPerGPU counts otherwise.
local function in_total(job_desc, gpus, kept)
   local count = asked(job_desc, "num_tasks")
   local others = has_text(job_desc, "cpus_per_tres") or has_text(job_desc, "mem_per_tres")
      or asked(job_desc, "ntasks_per_node")
   if not count or kept == "" or others or gpus.prefix == "" or gpus.count ~= 1 then
      return nil
   end
   return {
      { "tres_per_task", kept },
      { "tres_per_job", gpus.prefix .. gres_text(gpus, count) },
      { "ntasks_per_tres", 1 },
   }, { 1, 1, asked(job_desc, "cpus_per_task") or 1, 0, 0, 0, 0 }
end

-- Whether the nodes of an array are not said: Slurm may spread its tasks, and changes no nodes.
local function is_open_array(job_desc)
   local least = asked(job_desc, "min_nodes")
   return has_text(job_desc, "array_inx")
      and (not least or least ~= asked(job_desc, "max_nodes"))
end

-- The footprint where squeue does not show all of it: --ntasks-per-gpu, and whether memory is for
-- each CPU beside --cpus-per-gpu. With either Slurm adds no CPUs by DefCpuPerGPU.
local function unseen(job_desc, by_gpu)
   local _, tasks = layout_of(job_desc)
   local cpus, cpus_each = per_gpu(job_desc, "cpus_per_tres", 1)
   local memory, memory_each = per_gpu(job_desc, "mem_per_tres", 1)
   local one = cpus and cpus > 0 and tasks == 1
   if not cpus or not memory or not (by_gpu or one) then
      return nil
   end
   return {
      1, by_gpu or 0, cpus > 0 and 1 or asked(job_desc, "cpus_per_task") or 1, cpus_each,
      asked(job_desc, "min_mem_per_node") or 0, asked(job_desc, "min_mem_per_cpu") or 0,
      memory_each,
   }
end

-- What a request comes to on each node; nil where it does not say so, or can be changed as it is.
local function on_each_node(job_desc, gpus, way)
   local nodes, tasks = layout_of(job_desc)
   if not tasks or (way == "task" and (gpus.count ~= 1 or not nodes))
      or (way == "job" and nodes ~= 1) then
      return nil
   end
   local form = { nodes = nodes or 1, tasks = tasks, said = asked(job_desc, "cpus_per_task") }
   form.gpus = way == "task" and tasks or gpus.count
   form.follows = way == "task" or (tasks == form.gpus and tasks > 1)
   form.frees = form.follows and asked(job_desc, "ntasks_per_node")
   form.by_gpu, form.cpus_each = per_gpu(job_desc, "cpus_per_tres", form.gpus)
   form.memory, form.memory_each = per_gpu(job_desc, "mem_per_tres", form.gpus)
   if not form.by_gpu or not form.memory or form.by_gpu % tasks > 0
      or (form.by_gpu > 0 and form.said) then
      return nil
   elseif way == "node" and not form.frees and form.by_gpu == 0 and form.memory == 0 then
      return nil
   end
   form.of_task = form.by_gpu > 0 and math.floor(form.by_gpu / tasks) or form.said or 1
   form.cpus = tasks * form.of_task
   form.spread = tasks > 1 and nodes ~= 1
   return form
end

-- Whether it comes to the same on nodes of any kind: tasks that do not fill cores of one, two or
-- four threads may get more of them, or lie as 4 + 2.
local function is_exact(job_desc, form, by_flags)
   local fills = form.of_task <= 2 or form.of_task % 4 == 0
   if form.tasks > 1 and (form.by_gpu > 0 or form.spread) and not fills then
      return false
   elseif form.spread and form.cpus % 4 > 0 then
      return false
   end
   local other = asked(job_desc, "min_mem_per_node") or asked(job_desc, "min_mem_per_cpu")
   return form.memory == 0 or (by_flags and not other)
end

-- The fields that say a form, as far as they differ.
local function fields_for(job_desc, form, gpus, way, kept)
   local changes = {}
   local function set(name, value)
      if job_desc[name] ~= value then
         changes[#changes + 1] = { name, value }
      end
   end
   if way ~= "node" then
      set("tres_per_" .. way, kept)
      changes[#changes + 1] = { "gres", gres_text(gpus, form.gpus) }
   end
   if form.by_gpu > 0 then
      set("cpus_per_tres", "")
      set("cpus_per_task", form.of_task) -- 1, too: else DefCpuPerGPU would count
   end
   if form.frees then
      set("num_tasks", form.nodes * form.tasks)
      set("ntasks_per_node", NO_VAL16)
   end
   set("min_cpus", form.nodes * form.cpus)
   if form.spread or (form.tasks > 1 and has_text(job_desc, "array_inx")) then
      set("pn_min_cpus", form.cpus) -- else 5 + 1 tasks instead of 3 + 3
   end
   if form.memory > 0 then -- last: where it was not set, it cannot be put back
      set("mem_per_tres", "")
      set("min_mem_per_node", form.memory)
   end
   return changes
end

-- The footprint of a token: what pliantd is to keep in proportion. None where Slurm may add to it.
local function footprint_of(job_desc, form)
   if not form.said and form.by_gpu == 0 and form.memory == 0 then
      return nil
   end
   return {
      form.follows and 1 or form.tasks, form.follows and 1 or 0,
      form.by_gpu > 0 and 1 or form.of_task, form.cpus_each,
      asked(job_desc, "min_mem_per_node") or 0, asked(job_desc, "min_mem_per_cpu") or 0,
      form.memory_each,
   }
end

-- GPUs of tasks, of which each node has as many, said for the node, and no more: --ntasks-per-node
-- keeps the tasks where they are whatever a core is, and can be changed later. Not where only the
-- total is said over several nodes: such a job starts as 3 + 1 where no node has room for 2 more.
local function with_its_tasks(job_desc, gpus, kept)
   local nodes, each = asked(job_desc, "min_nodes"), asked(job_desc, "ntasks_per_node")
   local count = asked(job_desc, "num_tasks") or nodes
   if not nodes and count and each and each > 0 then
      nodes = math.floor(count / each)
   end
   local tasks = nodes and nodes > 0 and math.floor(count / nodes)
   if gpus.count ~= 1 or not tasks or nodes ~= (asked(job_desc, "max_nodes") or nodes)
      or tasks * nodes ~= count or tasks ~= (each or tasks)
      or (not each and tasks > 1 and nodes > 1) then
      return nil
   end
   local changes = { { "tres_per_task", kept }, { "gres", gres_text(gpus, tasks) } }
   local numbers = {
      min_nodes = nodes, max_nodes = nodes, num_tasks = count, ntasks_per_node = tasks,
   }
   for name, value in pairs(numbers) do
      if job_desc[name] ~= value then
         changes[#changes + 1] = { name, value }
      end
   end
   return changes, unseen(job_desc, 1)
end

-- The changes that say a request per node, and its footprint; nil where it can be changed as it is,
-- or must stay. `by_flags`: given with the SPANK plugin, which takes SLURM_MEM_PER_GPU from the
-- job's environment; with it, srun would refuse memory per node.
local function per_node_form(job_desc, gpus, way, kept, by_flags)
   local form = on_each_node(job_desc, gpus, way)
   if form and is_exact(job_desc, form, by_flags) and (way ~= "task" or form.tasks > 1) then
      return fields_for(job_desc, form, gpus, way, kept), footprint_of(job_desc, form)
   elseif way == "task" then
      local changes, footprint = with_its_tasks(job_desc, gpus, kept)
      if changes then
         return changes, footprint
      end
      return in_total(job_desc, gpus, kept)
   end
end

-- The tasks of an array's jobs that have one node, as the node's: what pliantd changes later. On
-- several nodes they may lie as 3 + 1, and would wait for 2 + 2.
local function packed(job_desc)
   local nodes, count = asked(job_desc, "min_nodes"), asked(job_desc, "num_tasks")
   if not has_text(job_desc, "array_inx") or is_open_array(job_desc) or not count
      or nodes ~= 1 or count <= 1 or asked(job_desc, "ntasks_per_node") then
      return {}
   end
   return { { "pn_min_cpus", count * (asked(job_desc, "cpus_per_task") or 1) } }
end

-- Whether the same may come to other CPUs or other memory, or be refused, once it is said per node:
-- beyond a limit of memory Slurm gives a job more CPUs, and does not count what is said by the GPU.
local function is_limited(job_desc, part_list)
   local said = has_text(job_desc, "cpus_per_tres") or has_text(job_desc, "mem_per_tres")
      or asked(job_desc, "min_mem_per_node") or asked(job_desc, "min_mem_per_cpu")
   if not said then
      return false
   end
   if limits_memory == nil then
      limits_memory = has_limit_for_all()
   end
   return limits_memory or has_limit(job_desc, part_list)
end

-- The changes that make a request one that can be changed later, and its footprint.
local function later_form(job_desc, by_flags, part_list)
   local gpus, way, kept = gpus_asked(job_desc)
   if not gpus or stays(job_desc) or is_limited(job_desc, part_list) then
      return {}
   end
   local by_gpu = asked(job_desc, "ntasks_per_tres")
   if by_gpu then
      return packed(job_desc), not is_open_array(job_desc) and unseen(job_desc, by_gpu) or nil
   end
   local changes, footprint = per_node_form(job_desc, gpus, way, kept, by_flags)
   if changes then
      return changes, footprint
   end
   return packed(job_desc), unseen(job_desc)
end

-- The words of a token, with what was noted of the form that the job was given.
local function changeable(job_desc, words, flags, part_list)
   if not words:match("^moldable") then
      return words
   end
   local fine, noted = pcall(function()
      local changes, footprint = later_form(job_desc, flags, part_list)
      set_all(job_desc, changes)
      for place, number in ipairs(footprint or {}) do
         footprint[place] = string.format("%.0f", number)
      end
      return footprint and words .. ";fp=" .. table.concat(footprint, ",") or words
   end)
   return fine and noted or words
end

-- Note what was said; the words, or nil where they are not understood or longer than `most`.
-- `prepare` may change the request, and what is noted: for one that got no answer.
local function write_token(job_desc, said, flags, most, prepare, part_list)
   local words = words_of(said, flags)
   words = words and #words <= most and words
   if words then
      local noted = prepare and prepare(job_desc, words, flags, part_list) or words
      local token = token_of(noted) .. (prepare and " " .. UNANSWERED or "")
      job_desc.admin_comment = with_token(job_desc.admin_comment or "", token)
   end
   return words
end

-- pliantd is not there: let the request be one that it can change later.
local function note_only(job_desc, said, flags, part_list)
   local wants_gpu = asks_for_gpu(job_desc) -- before it is said in another way
   local words = write_token(job_desc, said, flags, MAX_WORDS, changeable, part_list)
   if not words then
      say("pliant: not available now, and what was said to it is not understood:"
         .. " the job is submitted as written")
      return
   end
   local moldable = words:match("^moldable=([^;]*)")
   if moldable and (moldable:find("gpus=", 1, true) or moldable:find("gpu-type=", 1, true))
      and not moldable:find("cpu", 1, true) and not wants_gpu then
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
   local changes = changes_of(job_desc, fields)
   if not changes then
      slurm.log_info("%s", "pliant: an answer is not one that this module knows:"
         .. " are pliant.lua and pliantd of one version?")
      return slurm.SUCCESS
   end
   set_all(job_desc, changes)
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

local function submit(job_desc, part_list)
   local flags = flags_of(job_desc)
   local said = flags ~= false and said_in(job_desc.comment)
   if not flags and not said then
      untold_since = os.time()
      return slurm.SUCCESS
   end
   pcall(tell_node, job_desc, said, flags)
   local line, too_long = request_of(job_desc, said, flags)
   local fields = line and ask(line)
   if fields then
      learn_limit(job_desc, part_list, fields)
   end
   if fields and not fields.away then
      return apply(job_desc, fields)
   end
   untold_since = os.time()
   if line then
      note_only(job_desc, said, flags, part_list)
   else
      write_token(job_desc, said, flags, MAX_TEXT) -- what is longer would keep pliantd busy
      say("pliant: " .. too_long .. ": the job is submitted as written")
   end
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
function M.job_submit(job_desc, part_list, _submit_uid)
   local fine, result = pcall(submit, job_desc, part_list)
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
