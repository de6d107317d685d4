/** Permissions: rules decide which calls run unasked, and `explain` says what they make of a call. */
// #region rules
import { createAgent, type Model } from 'runchart';
import { codingTools, permissions } from 'runchart/node';

const rules = permissions({
  allow: ['bash(npm test *)', 'bash(git add *)', 'edit(./src/**)'],
  ask: ['bash(git push *)'],
  deny: ['bash(rm *)', 'read(**/.env)'],
});
// #endregion

// #region explain
for (const command of ['npm test -- --bail', 'ls src && make', 'echo "$(rm -rf .)"', '/usr/bin/git  push']) {
  const { outcome, by } = await rules.explain('Bash', { command }, process.cwd());
  console.log(`${command}: ${outcome} (${by})`);
}
// #endregion

// #region agent
/** A script in place of a real model. It wants one command, then says good-bye. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const asks = messages.at(-1)?.role === 'user';
    if (asks) yield { type: 'tool-call', callId: 'call_1', name: 'Bash', args: '{"command":"ls | wc -l && make"}' };
    else yield { type: 'text-delta', text: 'Bye.' };
    yield { type: 'finish', reason: asks ? 'tool-calls' : 'stop' };
  },
};

const agent = createAgent({ model, tools: codingTools({ sandbox: 'off' }), plugins: [rules] });
const conversation = await agent.open();
const { pending } = await conversation.send('Build it').result;
for (const { callId, name, args, payload } of pending) {
  console.log(name, JSON.stringify(args), JSON.stringify(payload));
  await conversation.decide({ callId, action: 'deny', reason: 'not today' });
}
const { text } = await conversation.resume().result;
console.log(text);
await agent.close();
// #endregion
