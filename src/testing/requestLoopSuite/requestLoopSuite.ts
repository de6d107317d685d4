/**
 * The replaceability checklist (docs/internals/contracts.md, 7) as cases, for any engine with the public names of
 * `runchart/request-loop`. Invariant: each case names its clause. The structure of one engine is not a clause.
 */
import assert from 'node:assert/strict';
import type { Node, Part } from '../../requestLoop/index.ts';
import type { SuiteRunner } from '../storeSuite/logStoreSuite.ts';
import {
  type LoopCase,
  loopBench,
  nodesOf,
  ofKind,
  READ,
  type RequestLoopEngine,
  rejectsWith,
  replyOf,
  textsOf,
} from './loopCase.ts';
import { callbackCases, endCases, stateCases } from './sessionCases.ts';

export type { RequestLoopEngine } from './loopCase.ts';

const runCases: readonly LoopCase[] = [
  [
    '7.1: a handle gives its nodes one after the other, with the answer as the output of the last',
    async (make) => {
      const run = await make([{ text: 'hello' }]).ask('hi');
      const nodes = await nodesOf(run);
      assert.equal(nodes.at(-1)?.result?.output, 'hello');
      assert.deepEqual(
        ofKind(nodes, 'modelResponse', 'text').map(({ content }) => content),
        ['hello'],
      );
      assert.equal(run.result?.output, 'hello');
    },
  ],
  [
    '7.1, 4.2: calls stand in the response, and their returns in the request of a later node',
    async (make) => {
      const nodes = await nodesOf(await make([READ, { text: 'done' }]).ask('hi'));
      const [call] = ofKind(nodes, 'modelResponse', 'tool-call');
      assert.deepEqual([call?.toolCallId, call?.toolName], ['c1', 'read']);
      const [back] = ofKind(nodes, 'request', 'tool-return');
      assert.deepEqual([back?.toolCallId, back?.toolName, back?.content], ['c1', 'read', 'read a.ts']);
      const places = [ofKind, ofKind].map((find, at) =>
        nodes.findIndex(
          (node) => find([node], at ? 'request' : 'modelResponse', at ? 'tool-return' : 'tool-call').length > 0,
        ),
      );
      assert.ok((places[0] ?? 0) < (places[1] ?? 0), 'the return stands behind its call');
    },
  ],
  [
    '7.1: a thought stands on its node, and among the thoughts of the session',
    async (make) => {
      const on = make([{ thought: 'which file?', text: 'done' }]);
      const nodes = await nodesOf(await on.ask('hi'));
      assert.ok(nodes.some(({ thought }) => thought === 'which file?'));
      assert.deepEqual(on.session.conversation.thoughts, ['which file?']);
    },
  ],
  [
    '7.1: allMessages() is what the session holds behind the run',
    async (make) => {
      const on = make([READ, { text: 'done' }]);
      const run = await on.ask('hi');
      assert.deepEqual(on.session.conversation.messages, run.allMessages());
      assert.deepEqual(textsOf(run), ['hi', 'read a.ts', 'done']);
    },
  ],
  [
    '1.1: the response state is completed behind an answer',
    async (make) => {
      const { responseState } = await make([{ text: 'hello' }]).ask('hi');
      assert.deepEqual({ ...responseState }, { state: 'RESPONSE', taskCompleted: true });
    },
  ],
];

const toolCases: readonly LoopCase[] = [
  [
    '7.2, 3.5: a call is registered with its arguments, running while it runs, completed with what it returned',
    async (make) => {
      const on = make([READ, { text: 'done' }]);
      const { toolRegistry } = on.session.runtime;
      const seen: unknown[] = [];
      await on.ask('hi', {
        toolCallback: (_, node) => {
          seen.push(toolRegistry.get('c1')?.status);
          return node.run();
        },
      });
      assert.deepEqual(seen, ['running']);
      assert.deepEqual(
        toolRegistry.list().map(({ callId, name, args, status, result }) => [callId, name, args, status, result]),
        [['c1', 'read', { path: 'a.ts' }, 'completed', 'read a.ts']],
      );
    },
  ],
  [
    '7.2: a call that stands in the text is run where there is no structured one',
    async (make) => {
      const text = 'I look: <tool_call>{"name":"read","arguments":{"path":"b.ts"}}</tool_call>';
      const on = make([{ text }, { text, ...READ }, { text: 'done' }]);
      await on.ask('hi');
      assert.deepEqual(on.read.executed, [{ path: 'b.ts' }, { path: 'a.ts' }]);
    },
  ],
  [
    '5.3: the callback is the executor, and run() runs the tool once however often it is called',
    async (make) => {
      const on = make([READ, { text: 'done' }]);
      await on.ask('hi', { toolCallback: async (_, node) => [await node.run(), await node.run()].join() });
      assert.equal(on.read.executed.length, 1);
      const by = make([READ, { text: 'done' }]);
      const run = await by.ask('hi', { toolCallback: async ({ name }) => `${name} by hand` });
      assert.equal(by.read.executed.length, 0);
      assert.ok(textsOf(run).includes('read by hand'));
    },
  ],
  [
    '3.5: a call that fails for good is failed in the registry, and the model is told',
    async (make) => {
      const on = make([{ calls: [['c1', 'broken', {}]] }, { text: 'done' }], { maxRetries: 1 });
      await on.ask('hi');
      assert.equal(on.broken.executed.length, 1);
      assert.equal(on.session.runtime.toolRegistry.get('c1')?.status, 'failed');
      assert.match(on.session.runtime.toolRegistry.get('c1')?.error ?? '', /it is broken/);
    },
  ],
  [
    '7.2, 3.5: a return of another engine completes its call by the arguments registered under its id',
    async (make) => {
      const on = make([]);
      on.session.runtime.toolRegistry.register('x', 'read', { path: 'c.ts' });
      const reports: unknown[] = [];
      const parts: Part[] = [{ partKind: 'tool-return', toolCallId: 'x', toolName: 'read', content: 'text' }];
      await on.process({ request: { parts } }, { toolResultCallback: (...all) => void reports.push(all) });
      assert.deepEqual(reports, [['read', 'completed', { path: 'c.ts' }, 'text', null]]);
      assert.equal(on.session.runtime.toolRegistry.get('x')?.status, 'completed');
    },
  ],
  [
    '3.5: a return without registered arguments is an error that names its id, one without an id is an error',
    async (make) => {
      const back = (toolCallId?: string): Node => ({
        request: {
          parts: [{ partKind: 'tool-return', toolName: 'read', content: 'text', ...(toolCallId && { toolCallId }) }],
        },
      });
      await rejectsWith(make([]).process(back('nobody-knows')), /nobody-knows/);
      await assert.rejects(make([]).process(back()));
    },
  ],
  [
    '1.2: a node without visible text and without calls is empty',
    async (make) => {
      const on = make([]);
      const { usage } = replyOf({});
      const verdict = await on.process({ modelResponse: { parts: [{ partKind: 'text', content: ' ' }], usage } });
      assert.deepEqual(verdict, { isEmpty: true, reason: 'empty' });
      const full = await on.process({ modelResponse: { parts: [{ partKind: 'text', content: 'a' }], usage } });
      assert.deepEqual(full, { isEmpty: false, reason: null });
    },
  ],
];

const groups: readonly (readonly [name: string, cases: readonly LoopCase[]])[] = [
  ['a run and its nodes', runCases],
  ['tools and their registry', toolCases],
  ['the state of the session', stateCases],
  ['callbacks', callbackCases],
  ['ends before the answer', endCases],
];

/**
 * Declares one test for each case. `runner` contains vitest's or node:test's `describe` and `test`, or your own. A
 * failed case rejects with an AssertionError, or with the engine's error.
 */
export function requestLoopSuite(engine: RequestLoopEngine, runner: SuiteRunner): void {
  for (const [group, cases] of groups) {
    runner.describe(group, () => {
      for (const [name, check] of cases) {
        runner.test(name, () => check((replies, settings) => loopBench(engine, replies, settings)));
      }
    });
  }
}
