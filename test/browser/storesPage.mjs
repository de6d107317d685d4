/** In a page: the store suite on `indexedDbStore`, and the logs that another page of the same origin finds. */
import { indexedDbStore } from '../../src/browser.ts';
import { createAgent } from '../../src/index.ts';
import { logStoreSuite } from '../../src/testing/storeSuite/logStoreSuite.ts';
import { STORE_ACTS } from '../support/secondTimesOfStores.ts';

const say = (result) => {
  const pre = document.createElement('pre');
  pre.id = 'result';
  pre.textContent = JSON.stringify(result);
  document.body.append(pre);
};

async function suite() {
  const cases = [];
  let group = '';
  let stores = 0;
  const makeStore = async () => {
    stores += 1;
    return indexedDbStore(`suite-${stores}`);
  };
  logStoreSuite(makeStore, {
    describe(name, body) {
      group = name;
      body();
    },
    test: (name, run) => void cases.push({ group, name, run }),
  });
  // Thousands of appends and large blobs are for the long tests, and so are two of three others.
  const few = cases.filter((each) => !/long logs/.test(each.group)).filter((_, index) => index % 3 === 0);
  const asked = location.search === '?whole' ? cases : few;
  const failed = [];
  for (const { name, run } of asked) {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error('it does not end')), 360_000));
    await Promise.race([run(), late]).catch((error) => failed.push(`${name}: ${error?.message ?? error}`));
  }
  return { cases: asked.length, failed };
}

/** The repetitions that other stores perform in Node's tests. */
async function secondTimes() {
  const failed = [];
  for (const [index, { act, same, run }] of STORE_ACTS.entries()) {
    const another = () => indexedDbStore(`second-${index}`);
    const holder = { store: another(), another };
    for (const time of [0, 1, 2]) {
      const found = JSON.stringify(await run(holder, time).catch(String));
      if (found !== JSON.stringify(same)) failed.push(`${act}, time ${time + 1}: ${found}`);
    }
  }
  return failed;
}

/** Checks that closed or refused handles leave no lock, and no connection that delays the deletion of the database. */
async function released() {
  const store = indexedDbStore('released');
  const entry = { seq: 0, at: 0, conversationId: 'c', runId: null, type: 'notice', code: 'n', text: 'x' };
  const handle = await store.open('c');
  await handle.append([entry], 0);
  const codes = [];
  const note = (asked) => asked.then(() => codes.push('done')).catch(({ code }) => codes.push(code));
  await note(handle.append([{ ...entry, seq: 1, text: () => 'no JSON' }], 1));
  await note(handle.append([entry], 0));
  await note(store.open('c'));
  for await (const _ of handle.read()) break;
  await Promise.all([handle.close(), handle.close()]);
  const locks = async () => (await navigator.locks.query()).held.filter(({ name }) => name.includes('released')).length;
  for (let time = 0; time < 100 && (await locks()) > 0; time += 1)
    await new Promise((resolve) => setTimeout(resolve, 10));
  const ended = await new Promise((resolve) => {
    const request = indexedDB.deleteDatabase('released');
    request.onsuccess = () => resolve('deleted');
    request.onerror = () => resolve('failed');
    request.onblocked = () => resolve('blocked');
  });
  // The store opens a new connection, to a database that is empty.
  const again = await store.open('c');
  await note(again.append([entry], 0));
  await again.close();
  return { codes, locks: await locks(), ended };
}

const model = {
  id: 'page',
  async *stream({ messages }) {
    yield { type: 'text-delta', text: `heard ${messages.at(-1).content[0].text}` };
    yield { type: 'finish', reason: 'stop' };
  },
};

/** Another page opens the first one's log, then holds its own log until the page is removed. */
async function otherPage() {
  const store = indexedDbStore('shared');
  const refused = await createAgent({ model, store })
    .open('held')
    .then(
      () => 'opened',
      (error) => error.code,
    );
  const listed = await store.list();
  await store.open('left');
  parent.postMessage({ refused, status: listed.find(({ id }) => id === 'held')?.status }, '*');
}

/** A second tab receives the error that the log is busy. A closed tab holds nothing, and its log continues. */
async function twoPages() {
  const store = indexedDbStore('shared');
  const agent = createAgent({ model, store });
  const conversation = await agent.open('held');
  await conversation.send('one').result;
  const other = document.createElement('iframe');
  const message = new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data), { once: true }));
  other.src = `${location.origin}/?other`;
  document.body.append(other);
  const { refused, status } = await message;
  const left = await store.open('left').then(
    () => 'opened',
    (error) => error.code,
  );
  other.remove();
  let again = 'session_busy';
  for (let time = 0; time < 100 && again !== 'opened'; time += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    again = await store.open('left').then(
      () => 'opened',
      (error) => error.code,
    );
  }
  await agent.close();
  const reopened = await createAgent({ model, store }).open('held');
  const result = await reopened.send('two').result;
  const seqs = reopened.log().map(({ seq }) => seq);
  return { refused, status, left, again, text: result.text, gapless: seqs.every((seq, index) => seq === index) };
}

if (location.search === '?other') await otherPage();
else say({ ...(await suite()), secondTimes: await secondTimes(), released: await released(), pages: await twoPages() });
