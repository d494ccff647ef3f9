-- Wrong credentials at an even rate, for wrk with one thread, until it is told to stop.
-- Arguments: calls a second, addresses, the body, and the parts of a credential before and after its number.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } flood_time;
int clock_gettime(int clock, flood_time *now);
]]

local MONOTONIC = ffi.os == "OSX" and 6 or 1
local clock = ffi.new("flood_time")
local rate, addresses, body, before, after
local began, promised, sent = 0, 0, 0
local threads = {}

local function now()
   ffi.C.clock_gettime(MONOTONIC, clock)
   return tonumber(clock.seconds) + tonumber(clock.nanoseconds) / 1e9
end

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   refused, other = 0, 0 -- Globals: done() asks the thread for them.
   rate, addresses, body = tonumber(args[1]), tonumber(args[2]), args[3]
   before, after = "Bearer " .. args[4], args[5]
   wrk.method = "POST"
end

function delay()
   if began == 0 then began = now() end
   promised = promised + 1
   return math.max(0, math.floor((began + promised / rate - now()) * 1000))
end

function request()
   sent = sent + 1
   local place = sent % addresses
   return wrk.format(nil, nil, {
      ["Authorization"] = before .. string.format("%012d", sent) .. after,
      ["X-Forwarded-For"] = string.format("198.18.%d.%d", math.floor(place / 256), place % 256),
      ["Content-Type"] = "application/json",
      ["A2A-Version"] = "1.0",
   }, body)
end

function response(status)
   if status == 401 or status == 429 then refused = refused + 1 else other = other + 1 end
end

function done()
   local thread = threads[1]
   io.write(string.format("FLOOD refused=%d other=%d\n", thread:get("refused"), thread:get("other")))
end
