-- For wrk: a body from the file $BENCH_BODY (a GET without), headers from $BENCH_HEADERS ("A: b|C: d"), and the API keys
-- of the file $BENCH_KEYS in turn. Prints one line of JSON at the end; times are microseconds.
local body = os.getenv("BENCH_BODY")
if body and body ~= "" then
  local file = assert(io.open(body, "rb"))
  wrk.method = "POST"
  wrk.body = file:read("*a")
  wrk.headers["Content-Type"] = "application/json"
  file:close()
end
for field in string.gmatch(os.getenv("BENCH_HEADERS") or "", "[^|]+") do
  local name, value = string.match(field, "^([^:]+):%s*(.*)$")
  wrk.headers[name] = value
end
local keys = os.getenv("BENCH_KEYS")
if keys and keys ~= "" then
  local made, sent = {}, 0
  for line in io.lines(keys) do made[#made + 1] = line end
  -- wrk.format knows the connection's Host only once a thread runs.
  function init()
    for number, key in ipairs(made) do
      wrk.headers["X-Service-Key"] = key
      made[number] = wrk.format()
    end
  end
  function request()
    sent = sent % #made + 1
    return made[sent]
  end
end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('RESULT {"requests":%d,"took_us":%d,"p50_us":%d,"p99_us":%d,"bad":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
