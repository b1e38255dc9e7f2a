-- For wrk: a body from the file $BENCH_BODY (a GET without), headers from $BENCH_HEADERS ("A: b|C: d"), and the API keys
-- of the file $BENCH_KEYS in turn. The text in the file $BENCH_TEXT, which is part of the body, is another one in every
-- request: its words in another order, and one word that was never there. Sends no more when it has $BENCH_MOST answers.
-- Prints one line of JSON at the end; times are microseconds.
local function read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read("*a")
  file:close()
  return content
end
local body, text = os.getenv("BENCH_BODY") or "", os.getenv("BENCH_TEXT") or ""
if body ~= "" then
  wrk.method = "POST"
  wrk.body = read(body)
  wrk.headers["Content-Type"] = "application/json"
end
for field in string.gmatch(os.getenv("BENCH_HEADERS") or "", "[^|]+") do
  local name, value = string.match(field, "^([^:]+):%s*(.*)$")
  wrk.headers[name] = value
end
local heads, sent = {}, 0
-- wrk.format knows the connection's Host only once a thread runs.
function init()
  local keys = os.getenv("BENCH_KEYS") or ""
  for key in string.gmatch(keys ~= "" and read(keys) or "\n", "([^\n]*)\n") do
    if key ~= "" then wrk.headers["X-Service-Key"] = key end
    heads[#heads + 1] = wrk.format()
  end
  math.randomseed(os.time())
  sent = math.random(100000000)
  if text ~= "" then make_new() end
end
function request()
  sent = sent + 1
  return heads[sent % #heads + 1]
end
-- Six letters that stand for a number: a word that was not there before.
local function word(number)
  local letters = {}
  for place = 1, 6 do
    local set = place % 2 == 1 and "bdfgklmnprst" or "aeiou"
    letters[place] = set:sub(number % #set + 1, number % #set + 1)
    number = math.floor(number / #set)
  end
  return table.concat(letters)
end
function make_new()
  local prompt = read(text)
  local words = {}
  for one in string.gmatch(prompt:sub(1, -8), "%S+") do words[#words + 1] = one end
  local pad = #prompt - #table.concat(words, " ") - 7
  for number, head in ipairs(heads) do
    local from, to = head:find(prompt, 1, true)
    heads[number] = {head:sub(1, from - 1), head:sub(to + 1)}
  end
  function request()
    sent = sent + 1
    local cut = sent % #words
    local turned = table.concat(words, " ", cut + 1) .. (cut > 0 and " " .. table.concat(words, " ", 1, cut) or "")
    local head = heads[sent % #heads + 1]
    return head[1] .. turned .. string.rep(" ", pad) .. " " .. word(sent) .. head[2]
  end
end
local most, got = tonumber(os.getenv("BENCH_MOST") or ""), 0
if most then
  function response()
    got = got + 1
    if got >= most then wrk.thread:stop() end
  end
end
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format('RESULT {"requests":%d,"took_us":%d,"p50_us":%d,"p99_us":%d,"bad":%d}\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
