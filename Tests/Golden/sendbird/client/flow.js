// The vendor's own JavaScript client against an emulator: every call that its API has for what the emulator serves.
//
//   node --experimental-websocket flow.js CLIENT API-PORT CONTROL-URL CONTROL-TOKEN [RECORDING]
//
// CLIENT is the path of `SendBird.min.js` 3.1.33. Prints one line a check; ends with 0 when all hold.
'use strict';
const fs = require('fs');
const { record, lines, call } = require('./standins.js');
const [client, port, controlURL, controlToken, recording] = process.argv.slice(2);
const SendBird = require(client);
const host = `http://127.0.0.1:${port}`;
const ws = `ws://127.0.0.1:${port}`;

// The client rejects a promise that nobody holds where it was given a callback.
process.on('unhandledRejection', () => {});

let count = 0;
let failed = 0;
function check(name, ok, why) {
  count += 1;
  if (!ok) failed += 1;
  console.log((ok ? 'ok   ' : 'FAIL ') + name + (ok || why === undefined ? '' : ': ' + why));
  record({ k: 'check', name, ok: !!ok });
}
async function part(name, body) {
  try { await body(); } catch (e) { check(name, false, `${e && e.code} ${e && e.message} ${e && e.stack}`); }
}
const turn = () => new Promise(r => setTimeout(r, 5));
/// Waits for what must come; the limit ends a run that went wrong.
async function until(condition, limit = 5000) {
  const end = Date.now() + limit;
  while (Date.now() < end) { const value = condition(); if (value) return value; await turn(); }
  return condition();
}
async function comes(name, condition) { check(name, await until(condition)); }
// Most callbacks are given (result, error), some (error, result).
const done = f => new Promise((res, rej) => f((a, b) => {
  const error = [a, b].find(x => x instanceof Error);
  return error ? rej(error) : res(a === null || a === undefined ? b : a);
}));
async function refusal(f) { try { await f(); return 0; } catch (e) { return e.code; } }
async function act(path, body) {
  // Not the client's doing, so it is told in the recording by what it means.
  record({ k: 'act', path, body });
  const response = await fetch(`${controlURL}/control/v1/${path}`, {
    method: 'POST', body: JSON.stringify(body), headers: { Authorization: `Bearer ${controlToken}` },
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response.json();
}
/// The Platform API, as an application's server calls it.
async function admin(method, path, body) {
  const answer = await call(method, `${host}/v3/${path}`, body, { headers: { 'Api-Token': 'secret' }, validateStatus: () => true });
  if (answer.status !== 200) throw Object.assign(new Error(JSON.stringify(answer.data)), { code: answer.data.code });
  return answer.data;
}

const events = [];
const names = [
  'onMessageReceived', 'onMessageUpdated', 'onMessageDeleted', 'onReadReceiptUpdated', 'onDeliveryReceiptUpdated',
  'onTypingStatusUpdated', 'onUserReceivedInvitation', 'onUserDeclinedInvitation', 'onUserJoined', 'onUserLeft',
  'onUserEntered', 'onUserExited', 'onUserMuted', 'onUserUnmuted', 'onUserBanned', 'onUserUnbanned', 'onChannelFrozen',
  'onChannelUnfrozen', 'onChannelChanged', 'onChannelDeleted', 'onChannelHidden', 'onMetaDataCreated',
  'onMetaDataUpdated', 'onMetaDataDeleted', 'onMetaCountersCreated', 'onMetaCountersUpdated', 'onMetaCountersDeleted',
  'onReactionUpdated', 'onThreadInfoUpdated', 'onOperatorUpdated', 'onMentionReceived', 'onChannelMemberCountChanged',
];
function listen(sb, who) {
  const handler = new sb.ChannelHandler();
  for (const name of names) handler[name] = (...a) => events.push({ who, name, a });
  sb.addChannelHandler('all', handler);
  const connection = new sb.ConnectionHandler();
  for (const name of ['onReconnectStarted', 'onReconnectSucceeded', 'onReconnectFailed']) {
    connection[name] = (...a) => events.push({ who, name, a });
  }
  sb.addConnectionHandler('all', connection);
  const user = new sb.UserEventHandler();
  user.onTotalUnreadMessageCountUpdated = (...a) => events.push({ who, name: 'onTotalUnread', a });
  user.onFriendsDiscovered = (...a) => events.push({ who, name: 'onFriendsDiscovered', a });
  sb.addUserEventHandler('all', user);
}
const seen = (who, name, test = () => true) => events.filter(e => e.who === who && e.name === name && test(e.a));
const make = () => new SendBird({ appId: 'APP', newInstance: true });
function say(sb, channel, text, more = {}) {
  return done(f => { const p = new sb.UserMessageParams(); p.message = text; Object.assign(p, more); channel.sendUserMessage(p, f); });
}
function buffer(text, name, type) { const b = Buffer.from(text); b.filename = name; b.name = name; b.type = type; return b; }

async function main() {
  record({ k: 'start', time: Date.now() });
  const alice = make();
  const bob = make();
  const carol = make();
  listen(alice, 'alice');
  listen(bob, 'bob');
  listen(carol, 'carol');
  let pair;
  let bobPair;
  let group;

  await part('connecting', async () => {
    check('a wrong token is refused with 400302', await refusal(() => alice.connect('alice', 'wrong', host, ws)) === 400302);
    check('alice connects with her token', (await alice.connect('alice', 'tok-alice', host, ws)).userId === 'alice');
    await bob.connect('bob', 'tok-bob', host, ws);
    check('bob connects', bob.getConnectionState() === 'OPEN');
    check('carol, whom nobody knew, connects without a token', (await carol.connect('carol', host, ws)).userId === 'carol');
    check('the application is told', alice.appInfo && alice.appInfo.uploadSizeLimit > 0 && alice.appInfo.emojiHash !== undefined);
    const long = make();
    check('an id that is too long is refused with 400305', await refusal(() => long.connect('x'.repeat(81), host, ws)) === 400305);
    await admin('POST', 'users', { user_id: 'gone', nickname: 'gone', profile_url: '' });
    await admin('PUT', 'users/gone', { is_active: false });
    check('a deactivated user is refused with 400300', await refusal(() => make().connect('gone', host, ws)) === 400300);
    const issued = await admin('POST', 'users', { user_id: 'dora', nickname: 'Dora', profile_url: '', issue_access_token: true });
    const dora = make();
    check('an issued access token opens', (await dora.connect('dora', issued.access_token, host, ws)).nickname === 'Dora');
    await dora.disconnect();
    const expired = await admin('POST', 'users/dora/token', { expires_at: 1 });
    check('an expired session token is refused with 400302', await refusal(() => make().connect('dora', expired.token, host, ws)) === 400302);
  });

  await part('users', async () => {
    const user = await alice.updateCurrentUserInfo('Alice', 'http://sendbird.test/a.png');
    check('profile', user.nickname === 'Alice' && user.plainProfileUrl === 'http://sendbird.test/a.png');
    await alice.updateCurrentUserInfoWithPreferredLanguages(['fr', 'de']);
    check('languages', alice.currentUser.preferredLanguages.join() === 'fr,de');
    const withImage = await bob.updateCurrentUserInfoWithProfileImage('Bob', buffer('png bytes', 'b.png', 'image/png'));
    check('profile image is uploaded', /\/files\//.test(withImage.plainProfileUrl || withImage.profileUrl));
    await carol.updateCurrentUserInfo('Carol', '');
    check('user metadata is made', (await alice.currentUser.createMetaData({ k: 'v', l: 'w' })).k === 'v');
    check('user metadata is changed', (await done(f => alice.currentUser.updateMetaData({ k: 'v2' }, true, f))).k === 'v2');
    await alice.currentUser.deleteMetaData('k');
    await alice.currentUser.deleteAllMetaData();
    check('user metadata is deleted', Object.keys(alice.currentUser.metaData).length === 0);
    const query = alice.createApplicationUserListQuery();
    query.limit = 2;
    const found = [];
    do { found.push(...await query.next()); } while (query.hasNext);
    check('users are listed page by page', ['alice', 'bob', 'carol', 'dora'].every(id => found.some(u => u.userId === id)));
    const some = alice.createApplicationUserListQuery();
    some.userIdsFilter = ['bob', 'carol'];
    check('users by id', (await some.next()).map(u => u.userId).sort().join() === 'bob,carol');
    const named = alice.createApplicationUserListQuery();
    named.nicknameStartsWithFilter = 'Car';
    check('users by nickname', (await named.next()).map(u => u.userId).join() === 'carol');
    await bob.currentUser.createMetaData({ team: 'blue' });
    const meta = alice.createApplicationUserListQuery();
    meta.metaDataKeyFilter = 'team';
    meta.metaDataValuesFilter = ['blue', 'red'];
    check('users by metadata', (await meta.next()).map(u => u.userId).join() === 'bob');
  });

  await part('friends', async () => {
    check('friends are added', (await alice.addFriends(['bob', 'carol'])).length === 2);
    const query = alice.createFriendListQuery();
    check('friends are listed', (await query.next()).length === 2);
    const log = await alice.getFriendChangeLogsByToken();
    check('friends have a changelog', log.updatedUsers.length === 2 && typeof log.token === 'string');
    await alice.deleteFriend('carol');
    const after = await alice.getFriendChangeLogsByToken(log.token);
    check('which tells who was removed', after.deletedUserIds.join() === 'carol');
    await alice.uploadFriendDiscoveries([{ friendDiscoveryKey: 'phone-1', friendName: 'One' }]);
    await alice.deleteFriendDiscoveries(['phone-1']);
    await alice.setAllowFriendDiscovery(false);
    check('discovery can be forbidden', (await alice.getAllowFriendDiscovery()) === false);
    await alice.deleteFriends(['bob']);
  });

  await part('group channels', async () => {
    const p = new alice.GroupChannelParams();
    p.addUserIds(['bob']);
    p.isDistinct = true;
    p.name = 'pair';
    pair = await alice.GroupChannel.createChannel(p);
    check('a distinct pair', pair.url.startsWith('sendbird_group_channel_') && pair.memberCount === 2 && pair.isDistinct);
    const q = new bob.GroupChannelParams();
    q.addUserIds(['alice']);
    q.isDistinct = true;
    const same = await bob.GroupChannel.createChannel(q);
    check('the same from the other side', same.url === pair.url);
    bobPair = await bob.GroupChannel.getChannel(pair.url);
    const three = await alice.GroupChannel.createChannelWithUserIds(['bob', 'carol'], true, 'three', '', '');
    const threeAgain = await carol.GroupChannel.createChannelWithUserIds(['bob', 'alice', 'bob'], true, 'other', '', '');
    check('three distinct in any order, also with one named twice', three.url === threeAgain.url && threeAgain.name === 'three');
    const r = new carol.GroupChannelParams();
    r.addUserIds(['alice', 'bob']);
    r.isDistinct = true;
    const made = await carol.GroupChannel.createDistinctChannelIfNotExist(r);
    check('create if absent says that it is there', made.isCreated === false && made.channel.url === three.url);
    group = await alice.GroupChannel.createChannelWithUserIds(['bob'], false, 'group', '', '{"a":1}', 'news');
    check('a plain group', !group.isDistinct && group.customType === 'news' && group.data === '{"a":1}');
    await comes('bob is told of it', () => seen('bob', 'onUserReceivedInvitation', a => a[0].url === group.url).length + seen('bob', 'onUserJoined', a => a[0].url === group.url).length > 0);
    const pub = new alice.GroupChannelParams();
    pub.isPublic = true;
    pub.name = 'public one';
    pub.channelUrl = 'public-one';
    pub.accessCode = '1234';
    const open = await alice.GroupChannel.createChannel(pub);
    check('a public one with an address of its own', open.isPublic && open.url === 'public-one' && open.isAccessCodeRequired);
    const carolPublic = await carol.GroupChannel.getChannel('public-one');
    check('a wrong access code is refused', await refusal(() => carolPublic.join('9')) === 400108);
    check('the right one opens', (await carolPublic.join('1234')).myMemberState === 'joined');
    await comes('alice sees carol join', () => seen('alice', 'onUserJoined', a => a[0].url === open.url && a[1].userId === 'carol').length);
    const list = carol.GroupChannel.createPublicGroupChannelListQuery();
    list.includeEmpty = true;
    check('public channels are listed', (await list.next()).map(c => c.url).join() === 'public-one');
    const eph = new alice.GroupChannelParams();
    eph.addUserIds(['bob']);
    eph.isEphemeral = true;
    const brief = await alice.GroupChannel.createChannel(eph);
    const sent = await say(alice, brief, 'kept nowhere');
    const none = brief.createPreviousMessageListQuery();
    check('an ephemeral one keeps nothing', brief.isEphemeral && sent.messageId > 0 && (await none.load()).length === 0);
    const big = new alice.GroupChannelParams();
    big.addUserIds(['bob']);
    big.isSuper = true;
    big.name = 'big';
    const superGroup = await alice.GroupChannel.createChannel(big);
    check('a super group', superGroup.isSuper);
    await say(alice, superGroup, 'to many');
    await comes('bob hears it', () => seen('bob', 'onMessageReceived', a => a[0].url === superGroup.url).length);
    const cast = new alice.GroupChannelParams();
    cast.isSuper = true;
    cast.isBroadcast = true;
    cast.addUserIds(['bob']);
    const broadcast = await alice.GroupChannel.createChannel(cast);
    check('a broadcast channel', broadcast.isBroadcast);
    const heard = await bob.GroupChannel.getChannel(broadcast.url);
    check('where only operators speak', (await refusal(() => say(bob, heard, 'no'))) > 900000);
    const change = new alice.GroupChannelParams();
    change.name = 'renamed';
    change.data = '{"b":2}';
    change.customType = 'news2';
    const changed = await group.updateChannel(change);
    check('a channel is changed', changed.name === 'renamed' && changed.customType === 'news2');
    await comes('bob sees the change', () => seen('bob', 'onChannelChanged', a => a[0].url === group.url && a[0].name === 'renamed').length);
    check('an unknown channel is refused with 400201', await refusal(() => alice.GroupChannel.getChannel('nowhere')) === 400201);
  });

  await part('messages', async () => {
    const first = await say(alice, pair, 'hello 你好 😀', { data: '{"k":1}', customType: 'ct' });
    check('a text is sent', first.messageId > 0 && first.sendingStatus === 'succeeded' && first.reqId !== '');
    await comes('bob receives it', () => seen('bob', 'onMessageReceived', a => a[1].messageId === first.messageId && a[1].message === 'hello 你好 😀' && a[1].data === '{"k":1}').length);
    check('alice gets no event for her own', seen('alice', 'onMessageReceived', a => a[1].messageId === first.messageId).length === 0);
    await comes('the delivery receipt reaches alice', () => seen('alice', 'onDeliveryReceiptUpdated').length);
    bobPair = await bob.GroupChannel.getChannel(pair.url);
    check('bob has one unread', bobPair.unreadMessageCount === 1);
    let progress = 0;
    const file = await new Promise((res, rej) => {
      const p = new alice.FileMessageParams();
      p.file = buffer('file bytes', 'a.txt', 'text/plain');
      p.fileName = 'a.txt';
      p.mimeType = 'text/plain';
      p.fileSize = 10;
      p.thumbnailSizes = [{ maxWidth: 100, maxHeight: 80 }, { maxWidth: 20, maxHeight: 20 }];
      p.data = 'file data';
      p.customType = 'ft';
      pair.sendFileMessage(p, e => { progress = e.loaded; }, (m, e) => (e ? rej(e) : res(m)));
    });
    check('a file is sent, with progress and thumbnails', file.messageId > 0 && file.size === 10 && file.thumbnails.length === 2 && progress > 0);
    check('the file comes down as it went up', await (await fetch(file.plainUrl || file.url)).text() === 'file bytes');
    await comes('bob receives the file', () => seen('bob', 'onMessageReceived', a => a[1].messageType === 'file' && a[1].name === 'a.txt' && a[1].data === 'file data').length);
    const linked = await done(f => { const p = new alice.FileMessageParams(); p.fileUrl = 'http://sendbird.test/far.png'; p.fileName = 'far.png'; p.mimeType = 'image/png'; p.fileSize = 77; pair.sendFileMessage(p, f); });
    check('a file by its address needs no upload', linked.messageId > 0 && linked.size === 77);
    const several = await new Promise(res => {
      const list = ['one', 'two'].map(t => { const p = new alice.FileMessageParams(); p.file = buffer(t, t + '.txt', 'text/plain'); p.fileName = t + '.txt'; p.mimeType = 'text/plain'; p.fileSize = 3; return p; });
      const sent = [];
      pair.sendFileMessages(list, { progress() {}, sent: (m, e) => sent.push(e ? null : m), complete: () => res(sent) });
    });
    check('two files in order', several.length === 2 && several.every(Boolean) && several[0].messageId < several[1].messageId);
    await admin('POST', `group_channels/${pair.url}/messages`, { message_type: 'ADMM', message: 'from the admin' });
    await comes('an admin message reaches both', () => seen('bob', 'onMessageReceived', a => a[1].messageType === 'admin').length && seen('alice', 'onMessageReceived', a => a[1].messageType === 'admin').length);
    const edited = await done(f => { const p = new alice.UserMessageParams(); p.message = 'hello 2'; p.data = '{"k":2}'; pair.updateUserMessage(first.messageId, p, f); });
    check('a text is changed', edited.message === 'hello 2' && edited.updatedAt > 0);
    await comes('bob sees the change', () => seen('bob', 'onMessageUpdated', a => a[1].message === 'hello 2').length);
    const refiled = await done(f => { const p = new alice.FileMessageParams(); p.data = 'new data'; p.customType = 'ft2'; pair.updateFileMessage(file.messageId, p, f); });
    check('a file message is changed', refiled.data === 'new data' && refiled.customType === 'ft2');
    check('somebody else may not change it', (await refusal(() => done(f => { const p = new bob.UserMessageParams(); p.message = 'x'; bobPair.updateUserMessage(first.messageId, p, f); }))) > 0);
    const copied = await done(f => pair.copyUserMessage(group, edited, f));
    check('a text is copied', copied.message === 'hello 2' && copied.channelUrl === group.url);
    const copiedFile = await done(f => pair.copyFileMessage(group, refiled, f));
    check('a file is copied', copiedFile.url === refiled.url && copiedFile.channelUrl === group.url);
    await pair.deleteMessage(linked);
    await comes('bob sees the deletion', () => seen('bob', 'onMessageDeleted', a => Number(a[1]) === linked.messageId).length);
    check('nobody may delete another one\'s', await refusal(() => bobPair.deleteMessage(edited)) === 400108);
    const translated = await pair.translateUserMessage(edited, ['fr']);
    check('a translation is answered', translated.translations && typeof translated.translations.fr === 'string');
    const multi = await say(alice, pair, 'good day', { translationTargetLanguages: ['fr', 'de'] });
    check('a text asks for translations', Object.keys(multi.translations).sort().join() === 'de,fr');
  });

  await part('failed messages', async () => {
    await act('rules', { match: { op: 'send', user: 'alice' }, do: [{ fail: { kind: 'rateLimited' } }] });
    let pending;
    const failure = await new Promise(res => {
      const p = new alice.UserMessageParams();
      p.message = 'again please';
      pending = pair.sendUserMessage(p, (m, e) => res({ m, e }));
    });
    check('a refused send fails with its code', failure.e && failure.e.code === 900200 && pending.messageId === 0);
    check('and may be sent again', failure.m.isResendable() && failure.m.sendingStatus === 'failed');
    const resent = await pair.resendUserMessage(failure.m);
    check('sent again it is there once', resent.messageId > 0 && resent.sendingStatus === 'succeeded');
    await act('rules', { match: { op: 'send', user: 'alice' }, do: [{ fail: { kind: 'rateLimited' } }] });
    const bytes = buffer('late file', 'late.txt', 'text/plain');
    const lost = await new Promise(res => { const p = new alice.FileMessageParams(); p.file = bytes; p.fileName = 'late.txt'; p.mimeType = 'text/plain'; p.fileSize = 9; pair.sendFileMessage(p, (m, e) => res({ m, e })); });
    check('a refused file fails', lost.e && lost.e.code === 900200);
    const again = await pair.resendFileMessage(lost.m, bytes);
    check('and is sent again', again.messageId > 0);
  });

  await part('history', async () => {
    for (let i = 0; i < 25; i++) await say(alice, pair, 'n' + i, i % 5 === 0 ? { customType: 'fifth' } : {});
    const back = bobPair.createPreviousMessageListQuery();
    back.limit = 10;
    const pages = [];
    do { const page = await back.load(); if (!page.length) break; pages.unshift(...page); } while (back.hasMore);
    check('paging backward finds every message once', new Set(pages.map(m => m.messageId)).size === pages.length && pages.filter(m => /^n\d+$/.test(m.message)).length === 25);
    const middle = pages[Math.floor(pages.length / 2)];
    const params = extra => Object.assign(new bob.MessageListParams(), { prevResultSize: 3, nextResultSize: 4, isInclusive: true }, extra);
    const around = await bobPair.getMessagesByTimestamp(middle.createdAt, params());
    check('around a time', around.some(m => m.messageId === middle.messageId) && around.length >= 8);
    const byID = await bobPair.getMessagesByMessageId(middle.messageId, params());
    check('around an id', byID.length === 8 && byID[3].messageId === middle.messageId);
    const reversed = await bobPair.getMessagesByMessageId(middle.messageId, params({ reverse: true, isInclusive: false }));
    check('newest first, without the one itself', reversed.length === 7 && reversed[0].createdAt >= reversed[6].createdAt);
    const old = f => new Promise((res, rej) => f((r, e) => (e ? rej(e) : res(r))));
    check('next by time', (await old(f => bobPair.getNextMessagesByTimestamp(middle.createdAt, false, 3, false, '', '', f))).every(m => m.createdAt > middle.createdAt));
    check('previous by time', (await old(f => bobPair.getPreviousMessagesByTimestamp(middle.createdAt, false, 3, false, '', '', f))).every(m => m.createdAt < middle.createdAt));
    check('both by time', (await old(f => bobPair.getPreviousAndNextMessagesByTimestamp(middle.createdAt, 2, 2, false, '', '', f))).length >= 5);
    check('next by id', (await old(f => bobPair.getNextMessagesByID(middle.messageId, true, 3, false, '', '', f))).length === 4);
    check('previous by id', (await old(f => bobPair.getPreviousMessagesByID(middle.messageId, false, 3, true, '', '', f))).length === 3);
    check('both by id', (await old(f => bobPair.getPreviousAndNextMessagesByID(middle.messageId, 2, 3, false, '', '', f))).length === 6);
    const files = await bobPair.getMessagesByTimestamp(9007199254740991, params({ prevResultSize: 50, nextResultSize: 0, messageType: 'FILE' }));
    check('files alone', files.length > 1 && files.every(m => m.messageType === 'file'));
    const fifths = await bobPair.getMessagesByTimestamp(9007199254740991, params({ prevResultSize: 50, nextResultSize: 0, customTypes: ['fifth'] }));
    check('one custom type', fifths.length === 5);
    const hers = await bobPair.getMessagesByTimestamp(9007199254740991, params({ prevResultSize: 100, nextResultSize: 0, senderUserIds: ['alice'] }));
    check('one sender', hers.length > 25 && hers.every(m => m.sender.userId === 'alice'));
    const one = await bob.BaseMessage.getMessage(Object.assign(new bob.MessageRetrievalParams(), { channelUrl: pair.url, channelType: 'group', messageId: middle.messageId }));
    check('one message', one.messageId === middle.messageId);
  });

  await part('changelogs', async () => {
    const since = Date.now() - 60000;
    const p = new bob.MessageChangeLogsParams();
    const before = await bobPair.getMessageChangeLogsSinceTimestamp(since, p);
    check('message changes since a time', before.updatedMessages.some(m => m.message === 'hello 2') && before.deletedMessageIds.length === 1, JSON.stringify([before.updatedMessages.map(m => m.message), before.deletedMessageIds]));
    let log = before;
    while (log.hasMore) log = await bobPair.getMessageChangeLogsSinceToken(log.token, p);
    const m = await say(alice, pair, 'to be changed');
    await done(f => { const q = new alice.UserMessageParams(); q.message = 'changed'; pair.updateUserMessage(m.messageId, q, f); });
    const after = await bobPair.getMessageChangeLogsSinceToken(log.token, p);
    check('message changes since a token', after.updatedMessages.length === 1 && after.updatedMessages[0].message === 'changed' && !after.hasMore);
    const nothing = await bobPair.getMessageChangeLogsSinceToken(after.token, p);
    check('nothing since the last token', nothing.updatedMessages.length === 0 && nothing.token === after.token);
    const params = new bob.GroupChannelChangeLogsParams();
    const channels = await bob.getMyGroupChannelChangeLogsByTimestamp(since, params);
    check('channel changes since a time', channels.updatedChannels.some(c => c.url === pair.url));
    let token = channels.token;
    let more = channels.hasMore;
    while (more) { const next = await bob.getMyGroupChannelChangeLogsByToken(token, params); token = next.token; more = next.hasMore; }
    await group.updateChannel(Object.assign(new alice.GroupChannelParams(), { name: 'renamed again' }));
    const gone = await alice.GroupChannel.createChannelWithUserIds(['bob'], false, 'short', '', '');
    await (await bob.GroupChannel.getChannel(gone.url)).leave();
    const news = await bob.getMyGroupChannelChangeLogsByToken(token, params);
    check('channel changes since a token', news.updatedChannels.some(c => c.url === group.url) && news.deletedChannelUrls.includes(gone.url));
    check('a token that is none is refused with 400111', await refusal(() => bob.getMyGroupChannelChangeLogsByToken('none', params)) === 400111);
  });

  await part('threads, reactions, arrays, mentions, search', async () => {
    const root = await say(alice, pair, 'root of a thread');
    const reply = await say(alice, pair, 'a reply', { parentMessageId: root.messageId });
    check('a reply knows its parent', reply.parentMessageId === root.messageId);
    await comes('bob learns of the thread', () => seen('bob', 'onThreadInfoUpdated', a => a[1].targetMessageId === root.messageId && a[1].threadInfo.replyCount === 1).length);
    const shown = await say(bob, bobPair, 'seen in the channel too', { parentMessageId: root.messageId, isReplyToChannel: true });
    check('a reply that is shown in the channel', shown.isReplyToChannel === true);
    const full = await alice.BaseMessage.getMessage(Object.assign(new alice.MessageRetrievalParams(), { channelUrl: pair.url, channelType: 'group', messageId: root.messageId, includeThreadInfo: true }));
    const threaded = await full.getThreadedMessagesByTimestamp(0, Object.assign(new alice.ThreadedMessageListParams(), { prevResultSize: 0, nextResultSize: 20, isInclusive: true, includeParentMessageInfo: true }));
    check('the thread is read', threaded.parentMessage.messageId === root.messageId && threaded.threadedReplies.length === 2);
    const lists = await Promise.all(['none', 'all', 'only_reply_to_channel'].map(replyType => bobPair.getMessagesByTimestamp(9007199254740991, Object.assign(new bob.MessageListParams(), { prevResultSize: 3, nextResultSize: 0, replyType, includeParentMessageInfo: true, includeThreadInfo: true }))));
    check('replies are left out or shown as asked', !lists[0].some(m => m.parentMessageId) && lists[1].filter(m => m.parentMessageId).length === 2 && lists[2].filter(m => m.parentMessageId).length === 1);
    check('with their parent', lists[1].find(m => m.parentMessageId).parentMessage.messageId === root.messageId);
    const event = await pair.addReaction(root, 'smile');
    check('a reaction', event.key === 'smile' && event.operation === 'add');
    await comes('bob sees the reaction', () => seen('bob', 'onReactionUpdated', a => a[1].messageId === root.messageId).length);
    check('twice the same is refused', await refusal(() => pair.addReaction(root, 'smile')) === 400202);
    await bobPair.addReaction(root, 'smile');
    const reacted = (await pair.getMessagesByMessageId(root.messageId, Object.assign(new alice.MessageListParams(), { isInclusive: true, includeReactions: true })))[0];
    check('reactions in history', reacted.reactions[0].userIds.sort().join() === 'alice,bob');
    await pair.deleteReaction(root, 'smile');
    await comes('and its end', () => seen('bob', 'onReactionUpdated', a => a[1].operation === 'delete').length);
    const array = new alice.MessageMetaArray('colours', ['red']);
    const tagged = await say(alice, pair, 'with arrays', { metaArrays: [array] });
    check('arrays travel with a message', tagged.metaArrays[0].key === 'colours');
    const added = await pair.addMessageMetaArrayValues(tagged, [new alice.MessageMetaArray('colours', ['blue'])]);
    check('values are added', added.metaArrays[0].value.join() === 'red,blue');
    const removed = await pair.removeMessageMetaArrayValues(tagged, [new alice.MessageMetaArray('colours', ['red'])]);
    check('values are removed', removed.metaArrays[0].value.join() === 'blue');
    const keyed = await pair.createMessageMetaArrayKeys(tagged, ['sizes']);
    check('keys are made', keyed.metaArrays.some(m => m.key === 'sizes'));
    const unkeyed = await pair.deleteMessageMetaArrayKeys(tagged, ['sizes']);
    check('keys are deleted', !unkeyed.metaArrays.some(m => m.key === 'sizes'));
    const withArrays = await pair.getMessagesByMessageId(tagged.messageId, Object.assign(new alice.MessageListParams(), { isInclusive: true, includeMetaArray: true }));
    check('arrays in history', withArrays[0].metaArrays[0].value.join() === 'blue');
    await say(alice, pair, 'hey @bob', { mentionedUserIds: ['bob'] });
    await comes('bob is told that he is mentioned', () => seen('bob', 'onMentionReceived').length);
    check('and has an unread mention', (await bob.GroupChannel.getChannelWithoutCache(pair.url)).unreadMentionCount >= 1);
    await say(alice, pair, 'hey all', { mentionType: 'channel' });
    const query = bob.createMessageSearchQuery('changed', { limit: 20, channelUrl: pair.url });
    const hits = await query.next();
    check('search finds by words', hits.length >= 1 && hits.every(m => /changed/.test(m.message)));
    const paged = bob.createMessageSearchQuery('n1', { limit: 4, order: 'ts' });
    const all = [];
    do { all.push(...await paged.next()); } while (paged.hasNext);
    check('search is paged', all.length >= 11 && new Set(all.map(m => m.messageId)).size === all.length);
  });

  await part('receipts, typing, unread', async () => {
    bobPair = await bob.GroupChannel.getChannel(pair.url);
    const m = await say(alice, pair, 'read me');
    await until(() => bobPair.lastMessage && bobPair.lastMessage.messageId === m.messageId);
    const total = await bob.getTotalUnreadMessageCount();
    check('unread in total', total >= bobPair.unreadMessageCount && total > 0);
    const params = new bob.GroupChannelTotalUnreadMessageCountParams();
    params.superChannelFilter = 'nonsuper';
    check('unread without super groups', (await bob.getTotalUnreadMessageCount(params)) <= total);
    check('channels with unread', (await bob.getTotalUnreadChannelCount()) > 0);
    const items = await bob.getUnreadItemCount(['group_channel_unread_message_count', 'non_super_group_channel_unread_mention_count', 'group_channel_invitation_count']);
    check('unread items', items.group_channel_unread_message_count === total && items.group_channel_invitation_count === 0);
    check('the count comes by itself', await until(() => seen('bob', 'onTotalUnread').length > 0) && bob.getSubscribedTotalUnreadMessageCount() > 0);
    await bobPair.markAsRead();
    await comes('the read receipt reaches alice', () => seen('alice', 'onReadReceiptUpdated', a => a[0].url === pair.url).length);
    const fresh = await alice.GroupChannel.getChannel(pair.url);
    await comes('everybody has read', () => fresh.getUnreadMemberCount(m) === 0 && fresh.getUndeliveredMemberCount(m) === 0);
    check('bob has nothing unread there', bobPair.unreadMessageCount === 0);
    pair.startTyping();
    await comes('bob sees typing', () => bobPair.isTyping() && bobPair.getTypingUsers()[0].userId === 'alice');
    pair.endTyping();
    await comes('and its end', () => !bobPair.isTyping());
    await bob.markAsReadWithChannelUrls([group.url]);
    await bob.markAsReadAll();
    await comes('all is read', () => bob.getSubscribedTotalUnreadMessageCount() === 0);
    check('also when asked', (await bob.getTotalUnreadMessageCount()) === 0);
    check('count of channels', (await bob.getGroupChannelCount('joined_only')) >= 3);
    await bobPair.setMyCountPreference('unread_mention_count_only');
    check('count preference', bobPair.myCountPreference === 'unread_mention_count_only');
    await bobPair.setMyCountPreference('all');
  });

  await part('invitations and members', async () => {
    await carol.setChannelInvitationPreference(false);
    check('invitations are not accepted by themselves', (await carol.getChannelInvitationPreference()).autoAccept === false);
    const room = await alice.GroupChannel.createChannelWithUserIds(['bob'], false, 'room', '', '');
    const bobRoom = await bob.GroupChannel.getChannel(room.url);
    await room.inviteWithUserIds(['carol']);
    await comes('carol is invited', () => seen('carol', 'onUserReceivedInvitation', a => a[0].url === room.url).length);
    let hers = await carol.GroupChannel.getChannel(room.url);
    check('and is not in yet', hers.myMemberState === 'invited' && hers.joinedMemberCount === 2);
    check('who is only invited may not write', await refusal(() => say(carol, hers, 'no')) === 900023);
    await hers.declineInvitation();
    await comes('alice sees that she declined', () => seen('alice', 'onUserDeclinedInvitation').length);
    await room.inviteWithUserIds(['carol']);
    hers = await carol.GroupChannel.getChannelWithoutCache(room.url);
    await hers.acceptInvitation();
    await comes('alice sees that she joined', () => seen('alice', 'onUserJoined', a => a[0].url === room.url && a[1].userId === 'carol').length);
    const members = room.createMemberListQuery();
    members.limit = 2;
    const all = [];
    do { all.push(...await members.next()); } while (members.hasNext);
    check('members page by page', all.map(m => m.userId).join() === 'alice,bob,carol');
    const prefix = room.createMemberListQuery();
    prefix.nicknameStartsWithFilter = 'Ca';
    check('members by nickname', (await prefix.next()).map(m => m.userId).join() === 'carol');
    await room.addOperators(['bob']);
    await comes('bob becomes operator', () => seen('bob', 'onOperatorUpdated', a => a[0].url === room.url).length);
    check('operators are listed', (await room.createOperatorListQuery().next()).length === 2);
    await room.removeOperators(['bob']);
    check('and are removed', (await room.createOperatorListQuery().next()).map(u => u.userId).join() === 'alice');
    check('only operators may', await refusal(() => bobRoom.freeze()) === 400108);
    await room.muteUserWithUserId('bob', 60, 'loud');
    await comes('bob is muted', () => seen('bob', 'onUserMuted', a => a[0].url === room.url).length);
    check('a muted one may not write', await refusal(() => say(bob, bobRoom, 'no')) === 900041);
    const info = await done(f => bobRoom.getMyMutedInfo(f));
    check('and knows for how long', info.isMuted && info.remainingDuration > 0 && info.description === 'loud');
    const muted = room.createMemberListQuery();
    muted.mutedMemberFilter = 'muted';
    check('muted members', (await muted.next()).map(m => m.userId).join() === 'bob');
    await room.unmuteUserWithUserId('bob');
    await comes('bob may speak again', () => seen('bob', 'onUserUnmuted').length);
    await room.freeze();
    await comes('the channel is frozen', () => seen('bob', 'onChannelFrozen', a => a[0].url === room.url).length);
    check('where only operators write', await refusal(() => say(bob, bobRoom, 'no')) === 900050 && (await say(alice, room, 'I may')).messageId > 0);
    await room.unfreeze();
    await comes('and thawed', () => seen('bob', 'onChannelUnfrozen').length);
    await room.banUserWithUserId('carol', 60, 'rude');
    await comes('carol is banned', () => seen('carol', 'onUserBanned').length);
    const banned = await room.createBannedUserListQuery().next();
    check('the banned are listed', banned.map(u => u.userId).join() === 'carol' && banned[0].restrictionInfo.description === 'rude');
    await room.unbanUserWithUserId('carol');
    await comes('and let in again', () => seen('alice', 'onUserUnbanned').length);
    await bobRoom.leave();
    await comes('alice sees bob leave', () => seen('alice', 'onUserLeft', a => a[0].url === room.url && a[1].userId === 'bob').length);
    await room.delete();
    await carol.setChannelInvitationPreference(true);
    check('a deleted channel is gone', await refusal(() => alice.GroupChannel.getChannelWithoutCache(room.url)) === 400201);
  });

  await part('metadata and counters', async () => {
    check('metadata is made', (await group.createMetaData({ k: 'v', l: 'w' })).k === 'v');
    await comes('bob sees it', () => seen('bob', 'onMetaDataCreated', a => a[1].k === 'v').length);
    check('one key is changed', (await group.updateMetaData({ k: 'v2', m: 'x' }, true)).k === 'v2');
    await comes('bob sees the change', () => seen('bob', 'onMetaDataUpdated', a => a[1].k === 'v2').length);
    check('some keys', Object.keys(await group.getMetaData(['k'])).join() === 'k');
    check('all keys', Object.keys(await group.getAllMetaData()).sort().join() === 'k,l,m');
    check('made twice is refused', await refusal(() => group.createMetaData({ k: 'v' })) === 400202);
    await group.deleteMetaData('k');
    await comes('bob sees the end of it', () => seen('bob', 'onMetaDataDeleted', a => a[1].includes('k')).length);
    await group.deleteAllMetaData();
    check('nothing is left', Object.keys(await group.getAllMetaData()).length === 0);
    check('counters are made', (await group.createMetaCounters({ n: 1, o: 5 })).n === 1);
    await comes('bob sees them', () => seen('bob', 'onMetaCountersCreated').length);
    check('increased', (await group.increaseMetaCounters({ n: 2 })).n === 3);
    check('decreased', (await group.decreaseMetaCounters({ n: 1 })).n === 2);
    check('set', (await group.updateMetaCounters({ n: 10 }, true)).n === 10);
    await comes('bob sees the changes', () => seen('bob', 'onMetaCountersUpdated', a => a[1].n === 10).length);
    check('read', (await group.getMetaCounters(['n'])).n === 10 && Object.keys(await group.getAllMetaCounters()).length === 2);
    await group.deleteMetaCounter('n');
    await comes('deleted', () => seen('bob', 'onMetaCountersDeleted').length);
    await group.deleteAllMetaCounters();
    check('all counters are gone', Object.keys(await group.getAllMetaCounters()).length === 0);
  });

  await part('hiding, history of one\'s own, blocking', async () => {
    bobPair = await bob.GroupChannel.getChannel(pair.url);
    await bobPair.hide(false, true);
    await comes('the channel is hidden', () => seen('bob', 'onChannelHidden', a => a[0].url === pair.url).length);
    const visible = bob.GroupChannel.createMyGroupChannelListQuery();
    visible.includeEmpty = true;
    check('and not in the list', !(await visible.next()).some(c => c.url === pair.url));
    const hidden = bob.GroupChannel.createMyGroupChannelListQuery();
    hidden.includeEmpty = true;
    hidden.hiddenChannelFilter = 'hidden_only';
    check('but among the hidden', (await hidden.next()).map(c => c.url).join() === pair.url);
    await say(alice, pair, 'come back');
    await comes('a message brings it back', () => bobPair.hiddenState === 'unhidden');
    await bobPair.hide(true, false);
    check('older messages are hidden too', (await bobPair.createPreviousMessageListQuery().load()).length === 0);
    await bobPair.unhide();
    await say(alice, pair, 'after the reset');
    check('newer ones are not', (await bobPair.createPreviousMessageListQuery().load()).length >= 1);
    await bobPair.resetMyHistory();
    check('history starts again', (await bobPair.createPreviousMessageListQuery().load()).length === 0);
    await bob.blockUserWithUserId('alice');
    const blocked = bob.createBlockedUserListQuery();
    check('the blocked are listed', (await blocked.next()).map(u => u.userId).join() === 'alice');
    const before = seen('bob', 'onMessageReceived').length;
    const code = await refusal(() => say(alice, pair, 'do you hear me'));
    check('the blocked one is told', code === 900080);
    await bob.unblockUserWithUserId('alice');
    await say(alice, pair, 'and now');
    await comes('unblocked, messages come', () => seen('bob', 'onMessageReceived').length === before + 1);
  });

  await part('channel lists', async () => {
    const base = await alice.GroupChannel.createChannelWithUserIds(['bob', 'carol'], false, 'Zeta plan', '', '', 'ta');
    const other = await alice.GroupChannel.createChannelWithUserIds(['bob'], false, 'alpha plan', '', '', 'tb');
    await say(alice, base, 'one');
    await say(alice, other, 'two');
    await base.createMetaData({ rank: '2' });
    await other.createMetaData({ rank: '1' });
    const list = async (set, sb = bob) => {
      const q = sb.GroupChannel.createMyGroupChannelListQuery();
      q.limit = 50;
      set(q);
      return (await q.next()).map(c => c.name);
    };
    const both = names => names.filter(n => / plan$/.test(n)).join();
    check('by last message', both(await list(q => { q.order = 'latest_last_message'; })) === 'alpha plan,Zeta plan');
    check('by creation', both(await list(q => { q.order = 'chronological'; })).length === 20);
    check('by name', both(await list(q => { q.order = 'channel_name_alphabetical'; })).length === 20);
    check('by metadata', both(await list(q => { q.order = 'metadata_value_alphabetical'; q.metadataOrderKeyFilter = 'rank'; })) === 'alpha plan,Zeta plan');
    check('with metadata', both(await list(q => { q.metadataKey = 'rank'; q.metadataValues = ['2']; })) === 'Zeta plan');
    check('with metadata that begins so', both(await list(q => { q.metadataKey = 'rank'; q.metadataValueStartsWith = '1'; })) === 'alpha plan');
    check('with a custom type', both(await list(q => { q.customTypesFilter = ['ta']; })) === 'Zeta plan');
    check('with a custom type that begins so', both(await list(q => { q.customTypeStartsWithFilter = 't'; })).length === 20);
    check('with a name', both(await list(q => { q.channelNameContainsFilter = 'zeta'; })) === 'Zeta plan');
    check('with an address', both(await list(q => { q.channelUrlsFilter = [other.url]; })) === 'alpha plan');
    check('with just these members', both(await list(q => { q.userIdsExactFilter = ['alice', 'carol']; })) === 'Zeta plan');
    check('with these members and more', both(await list(q => { q.userIdsIncludeFilter = ['carol']; q.userIdsIncludeFilterQueryType = 'OR'; })) === 'Zeta plan');
    check('with a member called so', both(await list(q => { q.nicknameContainsFilter = 'aro'; })) === 'Zeta plan');
    check('with a member whose name begins so', both(await list(q => { q.nicknameStartsWithFilter = 'Caro'; })) === 'Zeta plan');
    check('with a member of just this name', both(await list(q => { q.nicknameExactMatchFilter = 'Carol'; })) === 'Zeta plan');
    check('by words in names', both(await list(q => { q.setSearchFilter(['member_nickname', 'channel_name'], 'zeta'); })) === 'Zeta plan');
    check('super groups alone', (await list(q => { q.superChannelFilter = 'super'; })).includes('big'));
    check('public ones alone', (await list(q => { q.publicChannelFilter = 'public'; q.includeEmpty = true; }, carol)).join() === 'public one');
    check('unread ones alone', both(await list(q => { q.unreadChannelFilter = 'unread_message'; })).length === 20);
    check('joined ones', both(await list(q => { q.memberStateFilter = 'joined_only'; })).length === 20);
    check('invited ones', (await list(q => { q.memberStateFilter = 'invited_only'; })).length === 0);
    const pages = bob.GroupChannel.createMyGroupChannelListQuery();
    pages.limit = 1;
    pages.includeEmpty = true;
    const urls = [];
    do { urls.push(...(await pages.next()).map(c => c.url)); } while (pages.hasNext);
    check('one at a time, each once', new Set(urls).size === urls.length && urls.length >= 5);
  });

  await part('open channels', async () => {
    const p = new alice.OpenChannelParams();
    p.name = 'lobby';
    p.operatorUserIds = ['alice'];
    p.customType = 'hall';
    p.data = 'd';
    const lobby = await alice.OpenChannel.createChannel(p);
    check('an open channel', lobby.name === 'lobby' && lobby.customType === 'hall' && lobby.isOperatorWithUserId('alice'));
    const bobLobby = await bob.OpenChannel.getChannel(lobby.url);
    check('who has not entered may not write', (await refusal(() => say(bob, bobLobby, 'no'))) === 900020);
    await lobby.enter();
    await bobLobby.enter();
    await comes('alice sees bob enter', () => seen('alice', 'onUserEntered', a => a[1].userId === 'bob').length);
    const text = await say(alice, lobby, 'open hello');
    await comes('bob hears it', () => seen('bob', 'onMessageReceived', a => a[1].messageId === text.messageId).length);
    const people = lobby.createParticipantListQuery();
    check('participants', (await people.next()).map(u => u.userId).sort().join() === 'alice,bob');
    await lobby.refresh();
    check('their number', lobby.participantCount === 2);
    const query = alice.OpenChannel.createOpenChannelListQuery();
    query.nameKeyword = 'lob';
    check('listed by name', (await query.next()).map(c => c.url).join() === lobby.url);
    const byType = alice.OpenChannel.createOpenChannelListQuery();
    byType.customTypes = ['hall'];
    byType.urlKeyword = lobby.url.slice(-12);
    check('listed by type and address', (await byType.next()).length === 1);
    await lobby.createMetaData({ topic: 'tea' });
    await comes('metadata there too', () => seen('bob', 'onMetaDataCreated', a => a[1].topic === 'tea').length);
    const list = bobLobby.createPreviousMessageListQuery();
    check('its history', (await list.load()).some(m => m.messageId === text.messageId));
    await lobby.muteUserWithUserId('bob', 60, 'hush');
    await comes('bob is muted', () => seen('bob', 'onUserMuted', a => a[0].url === lobby.url).length);
    check('the muted are listed', (await lobby.createMutedUserListQuery().next()).map(u => u.userId).join() === 'bob');
    check('and may not write', await refusal(() => say(bob, bobLobby, 'no')) === 900041);
    await lobby.unmuteUserWithUserId('bob');
    const q = new alice.OpenChannelParams();
    q.name = 'lounge';
    q.operatorUserIds = ['alice', 'carol'];
    check('it is renamed', (await lobby.updateChannel(q)).name === 'lounge');
    check('its operators', (await lobby.createOperatorListQuery().next()).length === 2);
    await bobLobby.exit();
    await comes('alice sees bob go', () => seen('alice', 'onUserExited', a => a[1].userId === 'bob').length);
    await lobby.banUserWithUserId('bob', 60);
    check('a banned one may not enter', await refusal(() => bobLobby.enter()) === 400750);
    check('the banned are listed', (await lobby.createBannedUserListQuery().next()).map(u => u.userId).join() === 'bob');
    await lobby.unbanUserWithUserId('bob');
    await lobby.deleteMessage(text);
    await lobby.exit();
    const away = await alice.OpenChannel.createChannel('short', '', '');
    await away.enter();
    await away.delete();
    check('deleted', await refusal(() => bob.OpenChannel.getChannelWithoutCache(away.url)) === 400201);
  });

  await part('push and preferences', async () => {
    await done(f => alice.registerGCMPushTokenForCurrentUser('gcm-1', f));
    await done(f => alice.registerAPNSPushTokenForCurrentUser('apns-1', f));
    const tokens = await alice.getMyPushTokensByToken('', 'gcm');
    check('device tokens', tokens.deviceTokens.join() === 'gcm-1' && tokens.type === 'gcm');
    await done(f => alice.unregisterGCMPushTokenForCurrentUser('gcm-1', f));
    await done(f => alice.unregisterAPNSPushTokenAllForCurrentUser(f));
    await done(f => alice.unregisterGCMPushTokenAllForCurrentUser(f));
    await done(f => alice.unregisterPushTokenAllForCurrentUser(f));
    check('none are left', (await alice.getMyPushTokensByToken('', 'gcm')).deviceTokens.length === 0);
    await done(f => alice.setPushTemplate('alternative', f));
    check('template', await done(f => alice.getPushTemplate(f)) === 'alternative');
    await alice.setPushTriggerOption('mention_only');
    check('trigger', await alice.getPushTriggerOption() === 'mention_only');
    await alice.setDoNotDisturb(true, 22, 30, 7, 15, 'Europe/Berlin');
    const quiet = await alice.getDoNotDisturb();
    check('quiet hours', quiet.doNotDisturbOn === true && quiet.startHour === 22 && quiet.endMin === 15 && quiet.timezone === 'Europe/Berlin');
    await alice.setSnoozePeriod(true, 1000, 2000);
    const snooze = await alice.getSnoozePeriod();
    check('snooze', snooze.isSnoozeOn === true && snooze.startTs === 1000);
    await pair.setMyPushTriggerOption('off');
    check('trigger of a channel', await pair.getMyPushTriggerOption() === 'off');
    await pair.setPushPreference(true);
    check('push of a channel', await pair.getPushPreference() === true);
  });

  await part('emoji, reports, schedules', async () => {
    const all = await alice.getAllEmoji();
    check('emoji', all.emojiCategories.length > 0 && all.emojiCategories[0].emojis.length > 0);
    const category = await alice.getEmojiCategory(all.emojiCategories[0].id);
    check('one category', category.emojis[0].key === all.emojiCategories[0].emojis[0].key);
    check('one emoji', (await alice.getEmoji(category.emojis[0].key)).url === category.emojis[0].url);
    await pair.report('spam', 'too much');
    await pair.reportUser(bob.currentUser, 'harassing', 'rude');
    const m = await say(bob, await bob.GroupChannel.getChannel(pair.url), 'bad words');
    await pair.reportMessage(m, 'inappropriate', 'see');
    check('reports are kept', (await admin('GET', `report/group_channels/${pair.url}`)).report_logs.length >= 2);
    const params = new alice.ScheduledUserMessageParams();
    params.message = 'later';
    const at = new Date(Date.now() + 3600000);
    params.setSchedule(at.getFullYear(), at.getMonth() + 1, at.getDate(), at.getHours(), at.getMinutes(), 'UTC');
    const scheduled = await pair.registerScheduledUserMessage(params);
    check('a message is scheduled', scheduled.scheduledId > 0 && scheduled.status === 'scheduled');
  });

  await part('collections', async () => {
    const told = [];
    const history = await alice.GroupChannel.getChannel(pair.url);
    const collection = history.createMessageCollection().setFilter(new alice.MessageFilter()).setStartingPoint(Date.now()).setLimit(10).build();
    const handler = {};
    for (const n of ['onMessagesAdded', 'onMessagesUpdated', 'onMessagesDeleted', 'onChannelUpdated', 'onChannelDeleted', 'onHugeGapDetected']) handler[n] = (...a) => told.push({ n, a });
    collection.setMessageCollectionHandler(handler);
    const page = await new Promise((res, rej) => collection.initialize(alice.MessageCollection.MessageCollectionInitPolicy.CACHE_AND_REPLACE_BY_API).onCacheResult(() => {}).onApiResult((e, m) => (e ? rej(e) : res(m))));
    check('a message collection is filled', page.length > 0 && collection.succeededMessages.length === page.length);
    while (collection.hasPrevious) { if (!(await collection.loadPrevious()).length) break; }
    check('and goes back to the beginning', collection.succeededMessages.some(m => m.message === 'hello 2'));
    const other = await bob.GroupChannel.getChannel(pair.url);
    const live = await say(bob, other, 'live one');
    await comes('it gains what is said', () => told.some(t => t.n === 'onMessagesAdded' && t.a[2].some(m => m.messageId === live.messageId)));
    await done(f => { const q = new bob.UserMessageParams(); q.message = 'live two'; other.updateUserMessage(live.messageId, q, f); });
    await comes('changes', () => told.some(t => t.n === 'onMessagesUpdated' && t.a[2].some(m => m.message === 'live two')));
    await other.deleteMessage(live);
    await comes('and loses', () => told.some(t => t.n === 'onMessagesDeleted'));
    const channels = alice.GroupChannel.createGroupChannelCollection().setOrder(alice.GroupChannelCollection.GroupChannelOrder.LATEST_LAST_MESSAGE).setFilter(Object.assign(new alice.GroupChannelFilter(), { includeEmpty: true })).setLimit(5).build();
    const moved = [];
    channels.setGroupChannelCollectionHandler({ onChannelsAdded: (c, l) => moved.push(['add', l]), onChannelsUpdated: (c, l) => moved.push(['update', l]), onChannelsDeleted: (c, l) => moved.push(['delete', l]) });
    while (channels.hasMore) { if (!(await channels.loadMore()).length) break; }
    check('a channel collection is filled', channels.channelList.length >= 5);
    const fresh = await bob.GroupChannel.createChannelWithUserIds(['alice'], false, 'fresh', '', '');
    await comes('it gains channels', () => moved.some(m => m[0] === 'add' && m[1].some(c => c.url === fresh.url)));

    // While alice is away, things happen; her collection must end as the server is.
    const kept = await say(alice, history, 'changed while away');
    const lost = await say(alice, history, 'deleted while away');
    await until(() => collection.succeededMessages.some(m => m.messageId === lost.messageId));
    await act('rules', { match: { op: 'resume', user: 'alice' }, do: [{ fail: { kind: 'server' } }] });
    await act('sessions/act', { user: 'alice', action: 'kill' });
    await until(() => seen('alice', 'onReconnectStarted').length);
    await admin('PUT', `group_channels/${pair.url}/messages/${kept.messageId}`, { message_type: 'MESG', message: 'changed' });
    await admin('DELETE', `group_channels/${pair.url}/messages/${lost.messageId}`);
    for (let i = 0; i < 5; i++) await say(bob, other, 'missed ' + i);
    check('alice comes back by herself', await until(() => seen('alice', 'onReconnectSucceeded').length && alice.getConnectionState() === 'OPEN', 15000));
    await comes('her collection has what was said', () => [0, 1, 2, 3, 4].every(i => collection.succeededMessages.some(m => m.message === 'missed ' + i)));
    await comes('what was changed', () => collection.succeededMessages.some(m => m.messageId === kept.messageId && m.message === 'changed'));
    await comes('and not what was deleted', () => !collection.succeededMessages.some(m => m.messageId === lost.messageId));
    check('each once', new Set(collection.succeededMessages.map(m => m.messageId)).size === collection.succeededMessages.length);
    collection.dispose();
    channels.dispose();
  });

  await part('sessions', async () => {
    await admin('POST', 'users', { user_id: 'erin', nickname: 'Erin', profile_url: '' });
    let tokens = 0;
    const told = [];
    const fresh = async () => { tokens += 1; return (await admin('POST', 'users/erin/token', {})).token; };
    const erin = make();
    listen(erin, 'erin');
    const handler = new erin.SessionHandler();
    handler.onSessionTokenRequired = (ok, no) => { told.push('required'); fresh().then(ok, no); };
    handler.onSessionRefreshed = () => told.push('refreshed');
    handler.onSessionError = e => told.push('error ' + e.code);
    handler.onSessionExpired = () => told.push('expired');
    handler.onSessionClosed = () => told.push('closed');
    erin.setSessionHandler(handler);
    await erin.connect('erin', await fresh(), host, ws);
    const room = await alice.GroupChannel.createChannelWithUserIds(['erin'], false, 'session', '', '');
    const hers = await erin.GroupChannel.getChannel(room.url);
    const sessions = await act('sessions/query', { user: 'erin' });
    await act('raw', { session: sessions[0].connection, text: 'EXPR{"expires_in":0,"reason":400309}\n' });
    await comes('an expired key is renewed with the token in hand', () => told.join() === 'refreshed');
    await act('credentials', { user: 'erin', action: 'expire' });
    await comes('an expired token is asked for and renewed', () => told.filter(t => t === 'refreshed').length === 2 && told.includes('required'));
    await say(alice, room, 'through it all');
    await comes('nothing was lost', () => seen('erin', 'onMessageReceived', a => a[1].message === 'through it all').length === 1);
    check('she can speak', (await say(erin, hers, 'still here')).messageId > 0);
    await act('credentials', { user: 'erin', action: 'revoke' });
    await comes('a revoked token closes the session', () => told.includes('closed'));
    check('exactly two tokens were needed', tokens === 2);
  });

  await part('refusals and invitations', async () => {
    const params = (sb, ids, more = {}) => {
      const p = new sb.GroupChannelParams();
      p.addUserIds(ids);
      return Object.assign(p, more);
    };
    check('a strict creation with an unknown user is 400111', await refusal(() => alice.GroupChannel.createChannel(params(alice, ['nobody'], { isStrict: true }))) === 400111);
    const room = await alice.GroupChannel.createChannel(params(alice, ['nobody', 'carol']));
    check('another leaves him out', room.memberCount === 2);
    await alice.blockUserWithUserId('bob');
    check('who blocks may not invite the blocked', await refusal(() => room.inviteWithUserIds(['bob'])) === 400701);
    check('nor the blocked him who blocks', await refusal(() => bob.GroupChannel.createChannel(params(bob, ['alice']))) === 400702);
    await alice.unblockUserWithUserId('bob');
    const arrays = list => done(f => {
      const q = new alice.UserMessageParams();
      q.message = 'arrays';
      q.metaArrays = list.map(([key, values]) => new alice.MessageMetaArray(key, values));
      room.sendUserMessage(q, f);
    });
    check('too many arrays are 900027', await refusal(() => arrays([1, 2, 3, 4, 5, 6].map(i => ['k' + i, ['v']]))) === 900027);
    check('too many values are 900028', await refusal(() => arrays([['k', Array.from({ length: 101 }, (_, i) => 'v' + i)]])) === 900028);
    const short = await alice.OpenChannel.createChannel('short', '', '');
    const his = await bob.OpenChannel.getChannel(short.url);
    await short.delete();
    check('entering what was deleted is 900070', await refusal(() => his.enter()) === 900070);

    await bob.setChannelInvitationPreference(false);
    await bob.addFriends(['alice']);
    const byFriend = await alice.GroupChannel.createChannel(params(alice, ['bob']));
    const byOther = await carol.GroupChannel.createChannel(params(carol, ['bob']));
    const mine = async filter => {
      const query = bob.GroupChannel.createMyGroupChannelListQuery();
      Object.assign(query, { includeEmpty: true, memberStateFilter: filter });
      return (await query.next()).map(c => c.url).join();
    };
    check('invited by a friend', await mine('invited_by_friend') === byFriend.url);
    check('invited by another', await mine('invited_by_non_friend') === byOther.url);
    const counts = await Promise.all(['invited_by_friend', 'invited_by_non_friend', 'invited_only'].map(s => bob.getGroupChannelCount(s)));
    check('and counted so', counts.join() === '1,1,2');
    await (await bob.GroupChannel.getChannel(byFriend.url)).acceptInvitation();
    check('an accepted one is open no more', await mine('invited_by_friend') === '');
    await bob.setChannelInvitationPreference(true);
    await bob.deleteFriends(['alice']);

    const later = zone => {
      const p = new alice.ScheduledUserMessageParams();
      p.message = 'later';
      p.setSchedule(2090, 1, 31, 10, 5, zone);
      return room.registerScheduledUserMessage(p);
    };
    check('a schedule keeps its zone', (await later('Asia/Seoul')).scheduledTimezone === 'Asia/Seoul' && (await later('Etc/GMT+9')).scheduledTimezone === 'Etc/GMT+9');
    check('an unknown zone is refused', await refusal(() => later('Nowhere/Town')) === 400111);
  });

  await part('away and back', async () => {
    bob.setBackgroundState();
    await until(() => bob.getConnectionState() !== 'OPEN');
    check('in the background the link is closed', bob.getConnectionState() !== 'OPEN');
    await say(alice, pair, 'while in the background');
    bob.setForegroundState();
    check('in the foreground it is open again', await until(() => bob.getConnectionState() === 'OPEN', 15000));
    const after = seen('bob', 'onMessageReceived').length;
    await say(alice, pair, 'and now live');
    await comes('and events come', () => seen('bob', 'onMessageReceived').length > after);
    await act('sessions/act', { user: 'bob', action: 'kill' });
    check('a cut link is opened again', await until(() => seen('bob', 'onReconnectSucceeded').length > 1 && bob.getConnectionState() === 'OPEN', 15000));
    check('it can be asked for', typeof bob.reconnect() === 'boolean');
    await until(() => bob.getConnectionState() === 'OPEN', 15000);
  });

  await part('the end', async () => {
    await alice.disconnect();
    await bob.disconnect();
    await carol.disconnect();
    check('disconnected', alice.getConnectionState() === 'CLOSED');
    check('and nobody is there any more', await refusal(() => alice.getTotalUnreadMessageCount()) === 800101);
  });
}

function end(status) {
  if (recording) fs.writeFileSync(recording, lines.map(l => JSON.stringify(l).replaceAll(`127.0.0.1:${port}`, 'sendbird.test')).join('\n') + '\n');
  process.exit(status);
}
main().then(() => {
  console.log(`${count - failed} of ${count}`);
  end(failed ? 1 : 0);
}, e => {
  console.log('stopped:', e && e.code, e && e.stack);
  end(2);
});
