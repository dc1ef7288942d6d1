// The page of `browser.js`: one part a load, all with the database of the loads before.
'use strict';

/// As much of axios as the client uses, of the browser's own.
function call(method, url, data, config = {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    const isForm = data instanceof FormData;
    const headers = Object.assign({}, config.headers);
    if (isForm) delete headers['Content-Type'];
    else if (data !== undefined && data !== null && !headers['Content-Type']) headers['Content-Type'] = 'application/json';
    for (const name of Object.keys(headers)) request.setRequestHeader(name, headers[name]);
    request.onload = () => {
      let parsed = request.responseText;
      try { parsed = JSON.parse(parsed); } catch { /* Kept as text. */ }
      const answer = { status: request.status, data: parsed, headers: {}, config, request };
      if ((config.validateStatus || (s => s >= 200 && s < 300))(request.status)) return resolve(answer);
      reject(Object.assign(new Error('status ' + request.status), { response: answer, request }));
    };
    request.onerror = () => reject(Object.assign(new Error('network'), { request }));
    request.send(isForm || typeof data === 'string' ? data : data === undefined || data === null ? null : JSON.stringify(data));
  });
}
window.axios = {
  get: (url, config) => call('GET', url, null, config),
  delete: (url, config) => call('DELETE', url, null, config),
  post: (url, data, config) => call('POST', url, data, config),
  put: (url, data, config) => call('PUT', url, data, config),
  isCancel: () => false,
  CancelToken: { source: () => ({ token: {}, cancel() {} }) },
};
window.axios.default = window.axios;

const part = Number(new URLSearchParams(location.search).get('part'));
async function ask(service, body) {
  const response = await fetch('/' + service, { method: 'POST', body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${service} ${JSON.stringify(body)}: ${text}`);
  return JSON.parse(text);
}
const check = (name, ok, why) => ask('check', { name: `${part}: ${name}`, ok: !!ok, why: why === undefined ? undefined : String(why) });
const act = (path, body, method) => ask('act', { path, body, method });
const admin = (method, path, body) => ask('admin', { method, path, body });
async function until(condition, limit = 20000) {
  const end = Date.now() + limit;
  while (Date.now() < end) {
    const value = await condition();
    if (value) return value;
    await new Promise(r => setTimeout(r, 10));
  }
  return condition();
}
async function comes(name, condition) { await check(name, await until(condition)); }
const done = f => new Promise((res, rej) => f((a, b) => {
  const error = [a, b].find(x => x instanceof Error);
  return error ? rej(error) : res(a === null || a === undefined ? b : a);
}));

const make = localCacheEnabled => new SendBird({ appId: 'APP', newInstance: true, localCacheEnabled });
/// After a page that ended with a message under way, the client's own start at times asks for a link before it has one,
/// and ends the login with 800101; the next login goes well.
async function online() {
  for (let tries = 1; ; tries++) {
    const alice = make(true);
    try {
      await alice.connect('alice', 'tok-alice', host, ws);
      return alice;
    } catch (error) {
      if (error.code !== 800101 || tries === 3) throw error;
    }
  }
}
function say(sb, channel, text) {
  return done(f => {
    const params = new sb.UserMessageParams();
    params.message = text;
    channel.sendUserMessage(params, f);
  });
}
const post = text => admin('POST', 'group_channels/room_100/messages', { message_type: 'MESG', user_id: 'bob', message: text });
const stored = async text => (await admin('GET', 'group_channels/room_100/messages?message_ts=9007199254740991&prev_limit=100&next_limit=0'))
  .messages.filter(m => m.message === text).length;
/// Rows of the database of this application and user.
async function rows() {
  const names = (await indexedDB.databases()).map(d => d.name);
  if (!names.includes('sendbird=APP-alice.db')) return 0;
  const wait = request => new Promise((res, rej) => {
    request.onsuccess = () => res(request.result);
    request.onerror = () => rej(request.error);
  });
  const database = await wait(indexedDB.open('sendbird=APP-alice.db'));
  let total = 0;
  for (const store of database.objectStoreNames) total += await wait(database.transaction(store).objectStore(store).count());
  database.close();
  return total;
}
function collect(sb, channel, limit) {
  const told = [];
  const collection = channel.createMessageCollection().setFilter(new sb.MessageFilter()).setStartingPoint(Date.now()).setLimit(limit).build();
  const handler = {};
  for (const n of ['onMessagesAdded', 'onMessagesUpdated', 'onMessagesDeleted', 'onChannelUpdated', 'onChannelDeleted', 'onHugeGapDetected']) {
    handler[n] = (...a) => told.push({ n, a });
  }
  collection.setMessageCollectionHandler(handler);
  const first = {};
  const ready = new Promise(res => collection.initialize(sb.MessageCollection.MessageCollectionInitPolicy.CACHE_AND_REPLACE_BY_API)
    .onCacheResult((error, messages) => Object.assign(first, { cacheError: error, cache: messages }))
    .onApiResult((error, messages) => { Object.assign(first, { apiError: error, api: messages }); res(); }));
  return { collection, told, first, ready };
}
async function toTheStart(collection) {
  while (collection.hasPrevious) { if (!(await collection.loadPrevious()).length) break; }
}
async function channelList(sb) {
  const list = sb.GroupChannel.createGroupChannelCollection().setOrder(sb.GroupChannelCollection.GroupChannelOrder.LATEST_LAST_MESSAGE)
    .setFilter(Object.assign(new sb.GroupChannelFilter(), { includeEmpty: true })).setLimit(10).build();
  list.setGroupChannelCollectionHandler({ onChannelsAdded() {}, onChannelsUpdated() {}, onChannelsDeleted() {} });
  while (list.hasMore) { if (!(await list.loadMore()).length) break; }
  return list;
}
function watch(sb) {
  const states = [];
  const handler = new sb.ConnectionHandler();
  for (const n of ['onReconnectStarted', 'onReconnectSucceeded', 'onReconnectFailed']) handler[n] = () => states.push(n);
  sb.addConnectionHandler('all', handler);
  return states;
}
/// The link is cut, and the first attempts to come back fail.
async function cut(states, times = 1) {
  states.length = 0;
  await act('rules', { match: { op: 'resume', user: 'alice', times }, do: [{ fail: { kind: 'server' } }] });
  await act('sessions/act', { user: 'alice', action: 'kill' });
  await until(() => states.includes('onReconnectStarted'));
}

const parts = [
  async function firstTime() {
    const alice = await online();
    const bob = make(false);
    await bob.connect('bob', 'tok-bob', host, ws);
    for (let i = 0; i < 45; i++) await admin('POST', 'group_channels', { user_ids: ['alice', 'bob'], channel_url: 'room_' + (100 + i), name: 'room ' + i });
    const hers = await alice.GroupChannel.getChannel('room_100');
    const his = await bob.GroupChannel.getChannel('room_100');
    for (let i = 0; i < 60; i++) await say(bob, his, 'm' + i);
    const { collection, told, first, ready } = collect(alice, hers, 20);
    await ready;
    await check('the cache is asked first', !first.cacheError && Array.isArray(first.cache));
    await check('then the server, for half of the limit on each side', !first.apiError && first.api.length === 10);
    await toTheStart(collection);
    await check('it goes back to the beginning', collection.succeededMessages.length === 60);
    const live = await say(bob, his, 'live');
    await comes('what is said is added', () => told.some(t => t.n === 'onMessagesAdded' && t.a[2].some(m => m.messageId === live.messageId)));
    await done(f => { const q = new bob.UserMessageParams(); q.message = 'changed'; his.updateUserMessage(live.messageId, q, f); });
    await comes('what is changed is changed', () => collection.succeededMessages.some(m => m.message === 'changed'));
    // Its collections do not follow reactions: the handler of the channel hears of them.
    const reacted = [];
    const handler = new alice.ChannelHandler();
    handler.onReactionUpdated = (channel, event) => reacted.push(event);
    alice.addChannelHandler('reactions', handler);
    await his.addReaction(live, 'smile');
    await comes('a reaction is told', () => reacted.some(e => e.messageId === live.messageId && e.key === 'smile' && e.userId === 'bob'));
    const own = await say(alice, hers, 'own');
    await comes('an own one stands in it once', () => !collection.pendingMessages.length && collection.succeededMessages.filter(m => m.messageId === own.messageId).length === 1);
    const file = await done(f => { const q = new alice.FileMessageParams(); q.file = new File(['words'], 'a.txt', { type: 'text/plain' }); hers.sendFileMessage(q, f); });
    await check('a file is uploaded from the page', file.messageId > 0 && file.size === 5 && await (await fetch(file.url)).text() === 'words');
    await check('the list of channels is whole', (await channelList(alice)).channelList.length === 45);
    await comes('all of it is in the database', async () => await rows() > 50);
    sessionStorage.own = String(own.messageId);
  },
  async function afterAbsence() {
    await post('while away');
    await admin('DELETE', 'group_channels/room_100/messages/' + sessionStorage.own);
    await admin('DELETE', 'group_channels/room_144');
    await admin('PUT', 'group_channels/room_143', { name: 'renamed' });
    await admin('POST', 'group_channels', { user_ids: ['alice', 'bob'], channel_url: 'room_new', name: 'new' });
    const alice = await online();
    const channel = await alice.GroupChannel.getChannel('room_100');
    const { collection, first, ready } = collect(alice, channel, 30);
    await ready;
    await check('the cache has what was kept', !first.cacheError && first.cache && first.cache.length === 15);
    await check('the server has the rest', !first.apiError && first.api.some(m => m.message === 'while away'));
    await comes('what was deleted is gone', () => !collection.succeededMessages.some(m => m.message === 'own'));
    await toTheStart(collection);
    const ids = collection.succeededMessages.map(m => m.messageId);
    await check('each message is there once', ids.length === 63 && new Set(ids).size === 63, ids.length);
    const list = await channelList(alice);
    const has = (url, name) => list.channelList.some(c => c.url === url && (!name || c.name === name));
    await comes('the list follows what became of channels', () => !has('room_144') && has('room_143', 'renamed') && has('room_new') && list.channelList.length === 45);

    const states = watch(alice);
    await cut(states);
    const params = new alice.UserMessageParams();
    params.message = 'written offline';
    channel.sendUserMessage(params, () => {}).catch?.(() => {});
    await post('missed');
    await comes('the link comes back', () => states.includes('onReconnectSucceeded'));
    await comes('what was missed is there', () => collection.succeededMessages.some(m => m.message === 'missed'));
    await comes('what was written meanwhile went out, once', async () => await stored('written offline') === 1);
    await comes('and waits no more', () => !collection.pendingMessages.length && !collection.failedMessages.length && collection.succeededMessages.filter(m => m.message === 'written offline').length === 1);
    // The page ends with a message that never left.
    await cut(states, null);
    const last = new alice.UserMessageParams();
    last.message = 'never left';
    channel.sendUserMessage(last, () => {}).catch?.(() => {});
    await comes('a message waits', () => collection.pendingMessages.length === 1);
    await act('rules', undefined, 'DELETE');
  },
  async function longAbsence() {
    const alice = await online();
    const channel = await alice.GroupChannel.getChannel('room_100');
    const waiting = collect(alice, channel, 20);
    await waiting.ready;
    await comes('what waited when the page ended is sent or failed, never both', async () => {
      const there = await stored('never left');
      const kept = waiting.collection.failedMessages.filter(m => m.message === 'never left').length;
      return there + kept === 1;
    });
    waiting.collection.dispose();
    for (let i = 0; i < 40; i++) await post('gap ' + i);
    const { collection, told, first, ready } = collect(alice, channel, 20);
    await ready;
    await check('the newest are there', !first.apiError && collection.succeededMessages.some(m => m.message === 'gap 39'));
    await toTheStart(collection);
    const all = () => new Set(collection.succeededMessages.map(m => m.message));
    await comes('and all others', () => all().size >= 104 && ['m0', 'm59', 'while away', 'missed', 'gap 0'].every(t => all().has(t)));
    const states = watch(alice);
    await cut(states);
    for (let i = 0; i < 40; i++) await post('huge ' + i);
    await until(() => states.includes('onReconnectSucceeded'));
    await comes('a huge gap is told', () => told.some(t => t.n === 'onHugeGapDetected'));
    collection.dispose();
    const again = collect(alice, channel, 100);
    await again.ready;
    await toTheStart(again.collection);
    await comes('a new collection has all', () => new Set(again.collection.succeededMessages.map(m => m.message)).size >= 144);
  },
  async function withoutServer() {
    await act('rules', { match: { op: 'auth', user: 'alice' }, do: [{ fail: { kind: 'server' } }] });
    const alice = make(true);
    let known = null;
    await new Promise(res => alice.connect('alice', 'tok-alice', host, ws, (a, b) => { known = [a, b].find(x => x && x.userId); res(); }).catch(() => {}));
    await check('a login that fails gives the user of the cache', known && known.userId === 'alice');
    const list = alice.GroupChannel.createGroupChannelCollection().setOrder(alice.GroupChannelCollection.GroupChannelOrder.LATEST_LAST_MESSAGE)
      .setFilter(Object.assign(new alice.GroupChannelFilter(), { includeEmpty: true })).setLimit(10).build();
    const channels = await list.loadMore();
    await check('and its channels', channels.length === 10 && channels[0].url === 'room_100');
    const { first } = collect(alice, channels[0], 20);
    await comes('and its messages', () => first.cache && first.cache.length === 10);
  },
  async function clearing() {
    const alice = await online();
    await check('there is a cache', await rows() > 0);
    await alice.clearCachedMessages(['room_100']);
    await alice.clearCachedData();
    await check('clearing leaves nothing', await rows() === 0);
    await check('and nothing is lost at the server', (await admin('GET', 'group_channels/room_100/messages/total_count')).total >= 144);
    await alice.disconnect();
  },
];

const script = document.createElement('script');
script.src = '/client.js';
script.onload = async () => {
  try { await parts[part](); } catch (error) { await check('went through', false, `${error && error.code} ${error && error.stack}`); }
  if (part + 1 < parts.length) location.href = '/?part=' + (part + 1);
  else await ask('stop', {});
};
document.head.append(script);
