-- Script for wrk: repeats the request of the environment variables and prints the result as one line of JSON.

wrk.method = os.getenv("BENCH_METHOD")
wrk.body = os.getenv("BENCH_BODY")
for name, value in os.getenv("BENCH_HEADERS"):gmatch("([^\n:]+): ([^\n]*)") do
  wrk.headers[name] = value
end

-- JSON-RPC ids must be unique in a session: if the body contains the first id, requests count up from it.
local first = os.getenv("BENCH_FIRST_ID")
local from, to = (wrk.body or ""):find(first, 1, true)
if from then
  local before, after
  local number = tonumber(first)
  request = function()
    if not before then
      local whole = wrk.format()
      from, to = whole:find(first, 1, true)
      before, after = whole:sub(1, from - 1), whole:sub(to + 1)
    end
    number = number + 1
    return before .. string.format("%d", number) .. after
  end
end

done = function(summary, latency, requests)
  local wrong = summary.errors
  io.write(string.format(
    '{"calls": %d, "seconds": %.6f, "p50": %.6f, "p99": %.6f, "failures": %d}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    wrong.connect + wrong.read + wrong.write + wrong.timeout + wrong.status
  ))
end
