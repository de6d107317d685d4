/** Random walks against a strict server; `npm run walk -- --runs 1 --seed N` repeats one. */
import { afterAll, expect, it } from 'vitest';
import { HANG_MS, volume } from '../support/tier.ts';
import { messageFaults, requestFaults } from './requestFaults.ts';
import { type WalkServer, walkServer } from './strictServer.ts';
import { walk } from './walk.ts';

let server: WalkServer | undefined;
afterAll(() => server?.close());

it('B01: a strict server never answers 400 over random aborts, denials, failures, suspensions and restarts', {
  timeout: HANG_MS,
}, async () => {
  server = await walkServer();
  const failed: string[] = [];
  let requests = 0;
  for (let seed = 1; seed <= volume.walks; seed++) {
    const report = await walk(seed, server);
    requests += report.requests;
    if (report.faults.length === 0) continue;
    failed.push([`npm run walk -- --runs 1 --seed ${seed}`, ...report.faults].join('\n  '));
  }
  expect(failed).toEqual([]);
  expect(requests).toBeGreaterThan(100);
});

const call = (id: string, args = '{}') => ({ id, type: 'function', function: { name: 'echo', arguments: args } });
const assistant = (...calls: object[]) => ({ role: 'assistant', content: null, tool_calls: calls });
const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' });
const user = { role: 'user', content: 'hi' };

it.each([
  ['a call without a result', [user, assistant(call('a')), user]],
  ['a call without a result at the end', [user, assistant(call('a'))]],
  ['a result before its call', [user, result('a'), assistant(call('a'))]],
  ['results in another order', [user, assistant(call('a'), call('b')), result('b'), result('a')]],
  ['two results of one call', [user, assistant(call('a')), result('a'), result('a')]],
  ['a message between a call and its result', [user, assistant(call('a')), user, result('a')]],
  ['a repeated id', [user, assistant(call('a')), result('a'), assistant(call('a')), result('a')]],
  ['empty arguments', [user, assistant(call('a', '')), result('a')]],
  ['arguments that are not an object', [user, assistant(call('a', '[1]')), result('a')]],
  ['an empty assistant message', [user, { role: 'assistant', content: '' }, user]],
  ['an assistant message at the end', [user, { role: 'assistant', content: 'ok' }]],
])('the strict server refuses %s', (_, messages) => {
  expect(messageFaults(messages)).not.toEqual([]);
  expect(requestFaults({ model: 'm', stream: true, messages })).not.toEqual([]);
});

it('the strict server accepts paired calls in their order', () => {
  const messages = [
    user,
    assistant(call('a'), call('b')),
    result('a'),
    result('b'),
    { role: 'assistant', content: 'ok' },
    user,
  ];
  expect(requestFaults({ model: 'm', stream: true, messages })).toEqual([]);
});
