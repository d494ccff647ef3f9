// Drives our server with the official JavaScript SDK 1.3.0 and prints what it saw, a JSON line for each step.
//
// Runs from a copy in the SDK's own folder: `node javascript_1_3_0.js URL KEY 1.0|0.3 JSONRPC|HTTP+JSON`. In its 0.3 mode
// it asks for the 0.3 card, and the SDK chooses its compatibility transport from what that says.

import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { Role, TaskState, generateAgentCardSignature, verifyAgentCardSignature } from '@a2a-js/sdk';
import {
  ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';

const [url, key, mode, binding] = process.argv.slice(2);
const hook = 'http://127.0.0.1:65001/hook?a=b';
const Transport = binding === 'HTTP+JSON' ? RestTransportFactory : JsonRpcTransportFactory;
const legacyCompat = { enabled: mode === '0.3' };

// Standard output is for what was seen; the SDK tells there of signatures that it does not believe.
console.debug = console.error;

// A client as somebody with a key would make one.
async function caller({ with: secret = key, ...clientConfig } = {}) {
  const versioned = (input, init = {}) => {
    const headers = new Headers(init.headers);
    if (mode === '0.3') headers.set('A2A-Version', '0.3');
    return fetch(input, { ...init, headers });
  };
  const fetchImpl = createAuthenticatingFetchWithRetry(versioned, {
    headers: async () => ({ Authorization: `Bearer ${secret}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const factory = new ClientFactory({
    transports: [new Transport({ fetchImpl, legacyCompat })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl, legacyCompat }),
    clientConfig,
  });
  return factory.createFromUrl(url);
}

function wish(prefix, { text = 'Hello', metadata, ...members } = {}) {
  const part = { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' };
  const message = {
    messageId: `${prefix}-${randomUUID()}`, role: Role.ROLE_USER, parts: [part], contextId: '', taskId: '',
    metadata: undefined, extensions: [], referenceTaskIds: [], ...members,
  };
  return { tenant: '', message, configuration: undefined, metadata };
}

const state = (status) => TaskState[status.state].replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

function content({ content: { $case, value }, filename, mediaType }) {
  if ($case === 'raw') return { bytes: Buffer.from(value).toString(), name: filename, type: mediaType };
  if ($case === 'url') return { url: value, name: filename, type: mediaType };
  return value;
}

const contents = (parts) => parts.map(content);
const results = (task) => task.artifacts.flatMap((artifact) => contents(artifact.parts));

// An event of a stream: its kind, and what it says.
function seen({ payload: { $case, value } }) {
  if ($case === 'task') return ['task', state(value.status)];
  if ($case === 'statusUpdate') return ['status', state(value.status)];
  if ($case === 'artifactUpdate') return ['artifact', contents(value.artifact.parts), value.append, value.lastChunk];
  return ['message', contents(value.parts)];
}

async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

const steps = {
  async card() {
    const client = await caller();
    const card = await client.getAgentCard();
    return {
      name: card.name, speaks: client.protocolVersion, streaming: card.capabilities.streaming,
      push: card.capabilities.pushNotifications, skills: card.skills.slice(0, 1).map((skill) => skill.id),
    };
  },

  async extended() {
    const client = await caller();
    const before = await client.transport.getExtendedAgentCard({ tenant: '' });
    const known = new Set((await (await fetch(`${url}/.well-known/agent-card.json`)).json()).skills.map((s) => s.id));
    const more = before.skills.map((skill) => skill.id).filter((id) => !known.has(id)).sort();
    return { offered: (await (await caller()).getAgentCard()).capabilities.extendedAgentCard, more };
  },

  // Their verifier on our cards, and a card of theirs for ours.
  async signed() {
    const read = async (path, headers = {}) => (await fetch(url + path, { headers })).json();
    const { keys } = await read('/.well-known/jwks.json');
    const verify = verifyAgentCardSignature(async (kid) => keys.find((known) => known.kid === kid));
    const found = await read('/.well-known/agent-card.json', { 'A2A-Version': '1.0' });
    await verify(found);
    const altered = { ...found, provider: { ...found.provider, organization: `${found.provider.organization}!` } };
    const verdict = await verify(altered).then(() => 'believed', (error) => error.message);
    const unversioned = await read('/.well-known/agent-card.json');
    const believed = await verify(unversioned).then(() => 'believed', (error) => error.message);
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const sign = generateAgentCardSignature(privateKey, { alg: 'ES256', kid: 'theirs', typ: 'JOSE' });
    const bare = await sign({
      name: 'Prüfer', description: '株式会社 😀 \u2028', version: '1', provider: { organization: 'Söhne', url: '' },
      supportedInterfaces: [{ url: 'https://x.example', protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
      capabilities: { streaming: false, extensions: [] }, defaultInputModes: ['text/plain'], defaultOutputModes: [],
      skills: [{ id: 's', name: 'S', description: '', tags: [] }], signatures: [],
    });
    const theirs = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'theirs' }] };
    return { said: found.provider.organization, altered: verdict, default: believed, bare, served: bare, keys: theirs };
  },

  // The SDK's own handler presents the key of every call here; it does not ask the card how.
  async credentials() {
    const client = await caller();
    return refusal(() => client.getTask({ tenant: '', id: 'nothing' }));
  },

  async send() {
    const client = await caller();
    const found = {};
    for (const prefix of ['artifact-text', 'artifact-file', 'artifact-file-url', 'artifact-data']) {
      const task = await client.sendMessage(wish(`tck-${prefix}`));
      found[prefix] = [state(task.status), ...results(task)];
    }
    return found;
  },

  async message() {
    const client = await caller();
    const said = (answer) => (answer.messageId ? ['message', contents(answer.parts)] : ['task', state(answer.status)]);
    return {
      replies: said(await client.sendMessage(wish('bare', { metadata: { agent: 'replies' } }))),
      conformance: said(await client.sendMessage(wish('tck-message-response'))),
    };
  },

  async immediate() {
    const client = await caller({ polling: true });
    return state((await client.sendMessage(wish('test-resubscribe-message-id'))).status);
  },

  async reject() {
    return state((await (await caller()).sendMessage(wish('tck-reject-task'))).status);
  },

  async stream() {
    return (await all((await caller()).sendMessageStream(wish('tck-stream-artifact-chunked')))).map(seen);
  },

  // A streamed text, joined as the helpers of the Python SDKs do it; the JavaScript SDK has none.
  async told() {
    const client = await caller();
    const events = await all(client.sendMessageStream(wish('told', { metadata: { agent: 'tells' } })));
    const text = (artifact) => contents(artifact.parts).join('\n');
    const updates = events.map((event) => event.payload).filter(({ $case }) => $case === 'artifactUpdate');
    const task = await client.getTask({ tenant: '', id: events[0].payload.value.id });
    const whole = text(task.artifacts[0]);
    return {
      chunks: updates.map(({ value }) => text(value.artifact)).join(''), apart: updates.length, task: whole, list: whole,
    };
  },

  async turns() {
    const client = await caller();
    const first = await client.sendMessage(wish('tck-input-required', { text: 'one' }));
    const second = await client.sendMessage(wish('tck-complete-task', { text: 'two', taskId: first.id }));
    const histories = [];
    for (const historyLength of [undefined, 2, 1, 0]) {
      const task = await client.getTask({ tenant: '', id: first.id, historyLength });
      histories.push(task.history.map((message) => contents(message.parts)[0]));
    }
    return { states: [state(first.status), state(second.status)], one: first.id === second.id, get: histories };
  },

  async listing() {
    const client = await caller();
    const contextId = randomUUID();
    const made = [];
    for (let n = 0; n < 3; n++) made.unshift((await client.sendMessage(wish('tck-complete-task', { contextId }))).id);
    const asked = { tenant: '', contextId, status: 0, pageSize: 2, pageToken: '' };
    let first;
    try {
      first = await client.listTasks(asked);
    } catch (error) {
      if (mode === '0.3') return 'not in this version';
      throw error;
    }
    const second = await client.listTasks({ ...asked, pageToken: first.nextPageToken });
    const ids = [...first.tasks, ...second.tasks].map((task) => task.id);
    return {
      pages: [first.tasks.length, second.tasks.length], total: first.totalSize, last: second.nextPageToken,
      'newest first': JSON.stringify(ids) === JSON.stringify(made),
    };
  },

  async cancel() {
    const client = await caller({ polling: true });
    const task = await client.sendMessage(wish('test-resubscribe-message-id'));
    const canceled = await client.cancelTask({ tenant: '', id: task.id, metadata: undefined });
    return [state(canceled.status), canceled.id === task.id];
  },

  // One client streams; another joins in the middle, and both hear the same from then on.
  async subscribe() {
    const [one, other] = [await caller(), await caller()];
    const heard = [];
    let tail;
    for await (const event of one.sendMessageStream(wish('test-resubscribe-message-id'))) {
      heard.push(event);
      if (heard.length === 4) tail = all(other.resubscribeTask({ tenant: '', id: heard[0].payload.value.id }));
    }
    const [first, ...rest] = await tail;
    return {
      heard: [...seen(heard[0]), ...seen(heard.at(-1))],
      joined: seen(first),
      'joined late': rest.length < heard.length - 2,
      same: JSON.stringify(rest) === JSON.stringify(heard.slice(-rest.length)),
      last: seen(rest.at(-1)),
    };
  },

  async webhooks() {
    const client = await caller();
    const taskId = (await client.sendMessage(wish('tck-input-required'))).id;
    const authentication = { scheme: 'Bearer', credentials: 'secret' };
    const ids = { tenant: '', taskId, id: 'mine' };
    const every = { tenant: '', taskId, pageSize: 0, pageToken: '' };
    const made = await client.createTaskPushNotificationConfig({ ...ids, url: hook, token: 'tok', authentication });
    const got = await client.getTaskPushNotificationConfig(ids);
    const listed = await client.listTaskPushNotificationConfig(every);
    await client.deleteTaskPushNotificationConfig(ids);
    const left = await client.listTaskPushNotificationConfig(every);
    return {
      made: [made.taskId === taskId, made.id, made.url, made.token],
      got: [got.id, got.url, got.token, got.authentication.scheme, got.authentication.credentials],
      listed: listed.configs.map((config) => config.id), left: left.configs.length,
    };
  },

  async errors() {
    const [client, nobody] = [await caller(), await caller({ with: 'tdk_nobody' })];
    const ended = (await client.sendMessage(wish('tck-complete-task'))).id;
    const unknown = { tenant: '', id: randomUUID() };
    const calls = {
      'unknown task': () => client.getTask(unknown),
      'not cancelable': () => client.cancelTask({ tenant: '', id: ended, metadata: undefined }),
      ended: () => client.sendMessage(wish('tck-complete-task', { taskId: ended })),
      'unknown stream': () => all(client.resubscribeTask(unknown)),
      'no such key': () => nobody.getTask({ tenant: '', id: ended }),
      'wrong field': () => client.sendMessage(wish('tck-complete-task', { parts: [] })),
    };
    const found = {};
    for (const [name, call] of Object.entries(calls)) found[name] = await refusal(call);
    return found;
  },
};

// What the SDK makes of our answer.
async function refusal(call) {
  try {
    return `no error: ${JSON.stringify(await call())}`;
  } catch (error) {
    return `${error.constructor.name} ${error.envelopeCode ?? ''}: ${error.message}`;
  }
}

for (const [saw, step] of Object.entries(steps)) {
  try {
    console.log(JSON.stringify({ saw, what: await step() }));
  } catch (error) {
    console.log(JSON.stringify({ saw, failed: error.stack }));
  }
}
