import ChatTransport

/// A page that shows a running emulator. It holds nothing: data comes by the control interface, with the token that
/// the reader types in.
enum Dashboard {
  static let headers: HTTPHeaders = [
    "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'",
  ]

  static let page = Array(
    """
    <!doctype html>
    <html lang="en"><meta charset="utf-8"><title>Emulator</title>
    <style>
    body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em }
    table { border-collapse: collapse; width: 100%; margin: .5em 0 2em }
    th, td { text-align: left; padding: .2em .6em; border-bottom: 1px solid #8884 }
    td.n { text-align: right; font-variant-numeric: tabular-nums } .no { opacity: .6 } #error { color: #b00 }
    @media (prefers-color-scheme: dark) { body { background: #111; color: #ddd } }
    </style>
    <h1 id="title">Emulator</h1>
    <form id="form"><label>Token <input id="token" type="password" autocomplete="off" size="50"></label> <button>Show</button></form>
    <p id="error" role="alert"></p><p id="state"></p>
    <h2>Sessions</h2><table id="sessions"></table>
    <h2>Rules</h2><table id="rules"></table>
    <h2>Last frames and requests</h2><table id="journal"></table>
    <h2>Coverage</h2><table id="coverage"></table>
    <script>
    const at = id => document.getElementById(id);
    let timer;
    function fill(id, names, rows) {
      const table = at(id); table.replaceChildren();
      const head = table.insertRow();
      for (const name of names) { const cell = document.createElement("th"); cell.textContent = name; head.append(cell); }
      for (const row of rows) {
        const line = table.insertRow();
        for (const value of row) {
          const cell = line.insertCell(); cell.textContent = value ?? "";
          if (typeof value === "number") cell.className = "n";
        }
      }
    }
    async function call(path) {
      const answer = await fetch("/control/v1/" + path, { headers: { Authorization: "Bearer " + at("token").value } });
      const json = await answer.json();
      if (!answer.ok) throw new Error(json.error.message);
      return json;
    }
    const time = ms => new Date(ms).toISOString();
    async function show() {
      clearTimeout(timer);
      try {
        const all = await call("summary"), journal = await call("journal");
        at("error").textContent = "";
        at("title").textContent = "Emulator: " + all.vendor;
        at("state").textContent = time(all.now) + ", " + all.connections + " connections, " + all.pendingRequests + " requests under way";
        fill("sessions", ["#", "user", "opened", "last activity"], all.sessions.map(s => [s.connection, s.user, time(s.openedAt), time(s.lastActivity)]));
        fill("rules", ["#", "operation", "phase", "does", "matched", "fired", "failure"], all.rules.map(r => [r.id, r.op, r.phase, r.do.join(", "), r.matches, r.hits, r.failure]));
        fill("journal", ["time", "way", "operation", "vendor's name", "user", "bytes", "status"], journal.slice(-100).reverse().map(e => [time(e.time), e.direction, e.op, e.vendorName, e.user, e.size, e.status]));
        fill("coverage", ["endpoint", "calls", "implemented"], all.coverage.map(c => [c.endpoint, c.calls, c.isImplemented ? "yes" : "no"]));
        timer = setTimeout(show, 2000);
      } catch (error) { at("error").textContent = error.message; }
    }
    at("form").addEventListener("submit", event => { event.preventDefault(); show(); });
    </script></html>
    """.utf8)
}
