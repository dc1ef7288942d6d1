// What the vendor's client requires in Node, made of Node's own: HTTP, form data and WebSocket, each recording what
// passes. The client itself is not part of this project; `flow.js` is told where it lies.
'use strict';
const http = require('http');
const Module = require('module');

const start = Date.now();
const lines = [];
function record(entry) { lines.push(Object.assign({ ms: Date.now() - start }, entry)); }

let requests = 0;
function call(method, url, data, config = {}) {
  const n = ++requests;
  return new Promise((resolve, reject) => {
    let body = null;
    const headers = Object.assign({}, config.headers);
    if (data !== undefined && data !== null) {
      if (Buffer.isBuffer(data)) body = data;
      else if (data instanceof FormData) {
        body = data.getBuffer();
        Object.assign(headers, data.getHeaders());
      } else {
        body = Buffer.from(typeof data === 'string' ? data : JSON.stringify(data));
        headers['Content-Type'] = headers['Content-Type'] || 'application/json';
      }
      headers['Content-Length'] = body.length;
    }
    const isForm = String(headers['Content-Type']).startsWith('multipart');
    record({ k: 'http<', n, method, url, headers, body: body ? body.toString(isForm ? 'latin1' : 'utf8') : undefined });
    const request = http.request(url, { method, headers }, response => {
      const parts = [];
      response.on('data', part => parts.push(part));
      response.on('end', () => {
        const text = Buffer.concat(parts).toString('utf8');
        record({ k: 'http>', n, status: response.statusCode, body: text });
        let parsed = text;
        try { parsed = JSON.parse(text); } catch { /* Kept as text. */ }
        const answer = { status: response.statusCode, data: parsed, headers: response.headers, config, request };
        const isGood = (config.validateStatus || (s => s >= 200 && s < 300))(response.statusCode);
        if (isGood) return resolve(answer);
        const error = new Error('status ' + response.statusCode);
        error.response = answer;
        error.request = request;
        reject(error);
      });
    });
    request.on('error', error => { error.request = request; reject(error); });
    if (config.cancelToken && config.cancelToken.watch) {
      config.cancelToken.watch(() => {
        const error = new Error('cancelled');
        error.isCancel = true;
        request.destroy();
        reject(error);
      });
    }
    if (body) request.write(body);
    request.end();
    if (body && config.onUploadProgress) config.onUploadProgress({ loaded: body.length, total: body.length });
  });
}

const axios = {
  get: (url, config) => call('GET', url, null, config),
  delete: (url, config) => call('DELETE', url, null, config),
  post: (url, data, config) => call('POST', url, data, config),
  put: (url, data, config) => call('PUT', url, data, config),
  isCancel: error => !!(error && error.isCancel),
  CancelToken: {
    source() {
      const watchers = [];
      return { token: { watch: f => watchers.push(f) }, cancel: () => watchers.forEach(f => f()) };
    },
  },
};
axios.default = axios;

class FormData {
  constructor() { this.parts = []; this.boundary = '----standin' + 'x'.repeat(16); }
  append(name, value, options) { this.parts.push({ name, value, options }); }
  getHeaders() { return { 'Content-Type': 'multipart/form-data; boundary=' + this.boundary }; }
  getBuffer() {
    const out = [];
    for (const { name, value, options } of this.parts) {
      const file = typeof options === 'string' ? options : options && options.filename;
      let head = `--${this.boundary}\r\nContent-Disposition: form-data; name="${name}"`;
      if (file) head += `; filename="${file}"\r\nContent-Type: ${value.type || 'text/plain'}`;
      const bytes = Buffer.isBuffer(value) ? value : Buffer.from(String(value && value.data ? value.data : value));
      out.push(Buffer.from(head + '\r\n\r\n'), bytes, Buffer.from('\r\n'));
    }
    out.push(Buffer.from(`--${this.boundary}--\r\n`));
    return Buffer.concat(out);
  }
}

const Native = globalThis.WebSocket;
let sockets = 0;
class RecordingSocket {
  constructor(url) {
    this.n = ++sockets;
    record({ k: 'ws-open', c: this.n, url });
    this.socket = new Native(url);
    this.socket.onopen = e => this.onopen && this.onopen(e);
    this.socket.onmessage = e => {
      record({ k: 'ws>', c: this.n, text: e.data });
      if (this.onmessage) this.onmessage(e);
    };
    this.socket.onclose = e => { record({ k: 'ws-closed', c: this.n }); if (this.onclose) this.onclose(e); };
    this.socket.onerror = e => this.onerror && this.onerror(e);
  }
  send(text) { record({ k: 'ws<', c: this.n, text }); this.socket.send(text); }
  close() { record({ k: 'ws-close', c: this.n }); this.socket.close(); }
  get readyState() { return this.socket.readyState; }
}

if (!Native) {
  console.error('this Node has no WebSocket: start it with --experimental-websocket');
  process.exit(3);
}
globalThis.WebSocket = RecordingSocket;
// The client asks before uploads and reconnects; without it every upload ends with 800200.
Object.defineProperty(globalThis, 'navigator', {
  value: { product: 'node', userAgent: '', onLine: true }, configurable: true,
});

const load = Module._load;
Module._load = function (name, ...rest) {
  if (name === 'axios') return axios;
  if (name === 'form-data') return FormData;
  if (name === 'ws') return RecordingSocket;
  return load.call(this, name, ...rest);
};

module.exports = { record, lines, call };
