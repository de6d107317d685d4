/** An agent embedded in a page: the page shows its steps and its chart live, and IndexedDB stores its log. */
import { type ConversationView, createAgent, defineTool, type Model, RunchartError } from 'runchart';
import { indexedDbStore, startChannelInspector } from 'runchart/browser';
import * as z from 'zod';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** A scripted model: it calls the tool, then reports the result. In your app, the model is on your server. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [said] = last?.role === 'tool' ? last.content : [];
    const words = said?.type === 'text' ? `There is ${said.text}.` : 'I go and look.';
    for (const word of words.split(' ')) {
      await pause(80);
      yield { type: 'text-delta', text: `${word} ` };
    }
    if (!said) yield { type: 'tool-call', callId: crypto.randomUUID(), name: 'look', args: '{"place":"garden"}' };
    yield { type: 'finish', reason: said ? 'stop' : 'tool-calls' };
  },
};

const look = defineTool({
  name: 'look',
  description: 'What is in a place.',
  parameters: z.object({ place: z.string() }),
  readOnly: true,
  // After a reload in the middle of a call, the tool runs again.
  idempotent: true,
  async execute({ place }) {
    await pause(800);
    return `a fig tree in the ${place}`;
  },
});

const element = <T extends HTMLElement>(selector: string): T => document.querySelector<T>(selector) as T;
const status = element('#status');

function show({ cycles }: ConversationView): void {
  const items = cycles.flatMap(({ steps, stop }) => [
    ...steps.flatMap((step): [string, string][] => {
      if (step.type !== 'ai-block')
        return [['asked', step.content.map((part) => ('text' in part ? part.text : '')).join('')]];
      const calls = step.groups.flatMap((group) => group.calls);
      const shown = calls.map(({ name, args, state }): [string, string] => [
        'call',
        `${name} ${JSON.stringify(args)}: ${state}`,
      ]);
      return [...(step.text ? [['said', step.text.text] as [string, string]] : []), ...shown];
    }),
    ...(stop ? [['stop', stop.reason] as [string, string]] : []),
  ]);
  element('#steps').replaceChildren(
    ...items.map(([kind, text]) => {
      const item = document.createElement('li');
      item.className = kind;
      // Text of models and tools is text.
      item.textContent = text;
      return item;
    }),
  );
}

// #region agent
const agent = createAgent({
  model,
  tools: [look],
  store: indexedDbStore('runchart-example'),
  policies: { onRestart: 'resume' },
});
// #endregion

try {
  const conversation = await agent.open('page');
  // This follows the opening: a second tab gets session_busy, and its chart shows the run of the first tab.
  startChannelInspector({ channel: 'example', control: true }).attach(conversation);
  conversation.view$.subscribe(show);
  conversation.live$.subscribe((signal) => {
    if (signal.type === 'status') status.textContent = signal.status;
  });
  status.textContent = conversation.status;
  element('form').addEventListener('submit', (event) => {
    event.preventDefault();
    if (conversation.status !== 'active') conversation.send(element<HTMLInputElement>('input').value);
  });
  // Before this, the browser itself would submit the form and load the page again.
  element<HTMLButtonElement>('button').disabled = false;
} catch (error) {
  if (!RunchartError.isRunchartError(error)) throw error;
  status.textContent = error.code;
}
