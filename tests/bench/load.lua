-- The load of one scenario, for wrk with one thread.
-- Arguments: HTTP method, seconds, most requests, requests a second (0: as many as are answered), what a right answer
-- holds, then for POST: id prefix, body before and after the id (nothing after it: a body without one), and a file of
-- ids, one a line, or "" for ids that are made up.
-- When the time is over nothing more is sent, and the end is the last answer: so every request sent is answered, and
-- the rows of the database can be compared with the answers.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } bench_time;
int clock_gettime(int clock, bench_time *now);
int getpid(void);
int kill(int process, int number);
]]

local MONOTONIC = ffi.os == "OSX" and 6 or 1
local SIGINT = 2 -- wrk's own way to end early
local FOREVER = 3600000
local clock = ffi.new("bench_time")
local seconds, most, rate, expected, prefix, before, after
local ids = {}
local threads = {}
local promised, opened = 0, 0

local function now()
   ffi.C.clock_gettime(MONOTONIC, clock)
   return tonumber(clock.seconds) + tonumber(clock.nanoseconds) / 1e9
end

function setup(thread)
   table.insert(threads, thread)
end

function init(args)
   -- Globals: done() asks the thread for them. wrk asks for one request before it begins, which is never sent.
   sent, answered, wrong, began, ended, example = -1, 0, 0, 0, 0, ""
   wrk.method, seconds, most, rate = args[1], tonumber(args[2]), tonumber(args[3]), tonumber(args[4])
   expected, prefix, before, after = args[5], args[6], args[7], args[8]
   if args[9] and args[9] ~= "" then
      for line in io.lines(args[9]) do table.insert(ids, line) end
   end
end

function delay()
   if promised < most and (began == 0 or now() - began < seconds) then
      promised = promised + 1 -- sent by this connection in a moment; others ask before that
      if rate == 0 then return 0 end
      if opened == 0 then opened = now() end
      return math.max(0, math.floor((opened + promised / rate - now()) * 1000))
   end
   if answered >= promised then ffi.C.kill(ffi.C.getpid(), SIGINT) end
   return FOREVER
end

function request()
   sent = sent + 1
   if sent == 1 then began = now() end
   if wrk.method == "GET" then return wrk.format() end
   local id = #ids > 0 and ids[sent % #ids + 1] or prefix .. string.format("%012x", sent)
   return wrk.format(nil, nil, nil, after == "" and before or before .. id .. after)
end

function response(status, headers, body)
   answered = answered + 1
   ended = now()
   if status ~= 200 or not string.find(body, expected, 1, true) then
      wrong = wrong + 1
      if example == "" then example = status .. " " .. string.gsub(string.sub(body, 1, 300), "%s", " ") end
   end
end

function done(summary, latency)
   local thread, errors = threads[1], summary.errors
   io.write(string.format(
      "BENCH sent=%d answered=%d wrong=%d lost=%d seconds=%.6f p50_ms=%.3f p95_ms=%.3f p99_ms=%.3f\n",
      thread:get("sent"), thread:get("answered"), thread:get("wrong"),
      errors.connect + errors.read + errors.write + errors.timeout, thread:get("ended") - thread:get("began"),
      latency:percentile(50) / 1000, latency:percentile(95) / 1000, latency:percentile(99) / 1000))
   io.write("EXAMPLE ", thread:get("example"), "\n")
end
