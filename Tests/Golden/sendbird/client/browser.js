// The vendor's own JavaScript client with its local cache, which needs a browser's database, against an emulator.
//
//   node browser.js CLIENT API-PORT CONTROL-URL CONTROL-TOKEN BROWSER
//
// CLIENT is the path of `SendBird.min.js` 3.1.33, BROWSER of a headless Chromium. The page is `browser.page.js`; it is
// loaded anew for each part, with the same database. The emulator's setting `hugeGap` is 20. Prints one line a check; ends with 0 when all hold.
'use strict';
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');
const { spawn } = require('child_process');
const [client, port, controlURL, controlToken, browserPath] = process.argv.slice(2);
const host = `http://127.0.0.1:${port}`;

const files = { '/client.js': client, '/page.js': path.join(__dirname, 'browser.page.js') };
const page = '<!doctype html><meta charset="utf-8"><title>client</title>'
  + `<script>const host = '${host}', ws = 'ws://127.0.0.1:${port}';</script>`
  + '<script src="/page.js"></script>';

let count = 0;
let failed = 0;
async function pass(url, method, headers, body) {
  const response = await fetch(url, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  return { status: response.status, text: await response.text() };
}
/// What the page asks for that it could not do itself.
const services = {
  check({ name, ok, why }) {
    count += 1;
    if (!ok) failed += 1;
    console.log((ok ? 'ok   ' : 'FAIL ') + name + (ok || why === undefined ? '' : ': ' + why));
    return { status: 200, text: '{}' };
  },
  // Behind the client's back.
  act: ({ path, body, method }) => pass(`${controlURL}/control/v1/${path}`, method || 'POST', { Authorization: `Bearer ${controlToken}` }, body),
  // The Platform API, as an application's server calls it.
  admin: ({ method, path, body }) => pass(`${host}/v3/${path}`, method, { 'Api-Token': 'secret', 'Content-Type': 'application/json' }, body),
  stop() {
    end();
    return { status: 200, text: '{}' };
  },
};

const server = http.createServer((request, response) => {
  const name = request.url.split('?')[0];
  if (request.method === 'GET') {
    const file = files[name];
    response.writeHead(200, { 'Content-Type': file ? 'text/javascript; charset=utf-8' : 'text/html; charset=utf-8' });
    return response.end(file ? fs.readFileSync(file) : page);
  }
  const parts = [];
  request.on('data', part => parts.push(part));
  request.on('end', async () => {
    try {
      const answer = await services[name.slice(1)](JSON.parse(Buffer.concat(parts).toString('utf8')));
      response.writeHead(answer.status);
      response.end(answer.text);
    } catch (error) {
      response.writeHead(500);
      response.end(String(error));
    }
  });
});

const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'sendbird-browser-'));
let browser;
let isOver = false;
function end() {
  if (isOver) return;
  isOver = true;
  console.log(`${count - failed} of ${count}`);
  browser.on('exit', () => {
    fs.rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    process.exit(failed || !count ? 1 : 0);
  });
  // With all the processes that it has made.
  process.kill(-browser.pid, 'SIGKILL');
}
process.on('SIGTERM', end);
server.listen(0, '127.0.0.1', () => {
  browser = spawn(browserPath, [
    '--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', `--user-data-dir=${profile}`,
    '--remote-debugging-port=0', `http://127.0.0.1:${server.address().port}/?part=0`,
  ], { stdio: 'ignore', detached: true });
  browser.on('error', error => {
    console.log('FAIL the browser: ' + error.message);
    process.exit(1);
  });
});
// Ends a run that went wrong.
setTimeout(() => { console.log('FAIL it took too long'); failed += 1; end(); }, 120000).unref();
