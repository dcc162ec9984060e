-- wrk sends what the environment says, over and over, and closes with one line of JSON.

wrk.method = os.getenv("BENCH_METHOD")
wrk.body = os.getenv("BENCH_BODY")
for name, value in os.getenv("BENCH_HEADERS"):gmatch("([^\n:]+): ([^\n]*)") do
  wrk.headers[name] = value
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
