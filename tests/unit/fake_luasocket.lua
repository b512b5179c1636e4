-- A luasocket whose clock stands still but for what calls wait: nothing here takes time itself.
-- Returns a function of a door that installs socket.unix and socket.core in luasocket's place.
-- A door says how long calls take, in seconds: connect, send, and gap before each byte of answer
-- (math.huge: never). busy: by how much later a busy machine comes back from a call that went well.
-- keeps: the connection stays open after an answer, with nothing more to be read.
-- Returned is a function that tells what was spent, and how often somebody was asked, since it was
-- last called.
return function(door)
   local now, spent, asked = 5000, 0, 0

   local function pass(seconds)
      now, spent = now + seconds, spent + seconds
   end

   -- A call that needs `takes` seconds in `parts` equal pieces. As luasocket: mode "t" limits the
   -- whole call, any other each piece alone, and a limit that is negative or not set is none.
   local function wait(self, takes, parts)
      local limit = self.limit
      if self.mode ~= "t" and limit * parts >= takes then limit = takes end
      if takes > limit then
         pass(limit)
         return nil, "timeout"
      end
      pass(takes + (door.busy or 0))
      return 1
   end

   local methods = {}
   methods.__index = methods

   function methods:settimeout(limit, mode)
      self.limit, self.mode = (limit and limit >= 0) and limit or 1000, mode
   end

   function methods:connect()
      asked = asked + 1
      if door.refused then return nil, "connection refused" end
      return wait(self, door.connect or 0, 1)
   end

   function methods:send(line)
      asked, self.answered = asked + (self.answered and 1 or 0), false
      local done, why = wait(self, door.send or 0, 1)
      return done and #line, why
   end

   function methods:receive()
      if self.answered then return nil, door.keeps and "timeout" or "closed", "" end
      local size = #(door.answer or "") + 1
      local done, why = wait(self, (door.gap or 0) * size, size)
      if not done then return nil, why end
      self.answered = true
      return door.answer
   end

   function methods:close() self.limit = 1000 end -- and takes no time

   package.preload["socket.unix"] = function()
      return { stream = function() return setmetatable({ limit = 1000 }, methods) end }
   end
   package.preload["socket.core"] = function()
      if door.no_clock then error("no module socket.core") end
      return { gettime = function() return now end }
   end
   return function()
      local text = string.format("%.4f asking %d", spent, asked)
      spent, asked = 0, 0
      return text
   end
end
