/** A page that follows a conversation and puts only what has changed. */

import { createAgent, defineTool, type Model } from 'runchart';
import { type LiveView, type RequestCycle, type ResolutionStep, withLiveText } from 'runchart/projector';
import { merge } from 'rxjs';
import * as z from 'zod';

// #region render
const escaped = (text: string) => text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
const textOf = (content: readonly ({ type: 'text'; text: string } | { type: 'image' | 'file' })[]) =>
  escaped(content.map((part) => (part.type === 'text' ? part.text : `[${part.type}]`)).join(''));

function drawStep(step: ResolutionStep): string {
  if (step.type !== 'ai-block') return `<p class="${step.type}">${textOf(step.content)}</p>`;
  const text = step.text ? `<p class="${step.text.kind}">${escaped(step.text.text)}</p>` : '';
  const calls = step.groups.flatMap(({ kind, calls }) =>
    calls.map(({ name, state, result }) => `<i class="${kind}">${escaped(name)} ${result?.outcome ?? state}</i>`),
  );
  return text + calls.join('');
}
function drawEnd({ stop, waiting }: RequestCycle): string {
  return stop ? stop.reason : waiting.length > 0 ? 'waits for you' : 'works';
}

/** Puts what differs from what is shown. What did not change is the same object, so `===` is all it takes. */
function renderer(put: (place: string, html: string) => void): (view: LiveView) => void {
  let shown: LiveView | undefined;
  return (view) => {
    for (const [i, cycle] of view.cycles.entries()) {
      const before = shown?.cycles[i];
      if (cycle === before) continue;
      for (const [j, step] of cycle.steps.entries()) {
        if (step !== before?.steps[j]) put(`${i}.${j}`, drawStep(step));
      }
      if (!before || drawEnd(cycle) !== drawEnd(before)) put(`${i}.end`, drawEnd(cycle));
    }
    const live = view.inFlight?.text ?? '';
    if (live !== (shown?.inFlight?.text ?? '')) put('live', escaped(live));
    shown = view;
  };
}
// #endregion

const weather = defineTool({
  name: 'weather',
  description: 'The weather in a city now.',
  parameters: z.object({ city: z.string() }),
  execute: ({ city }) => `18 °C and dry in ${city}`,
});
/** Says that it looks, looks, and answers. */
const model: Model = {
  id: 'scripted',
  async *stream({ messages }) {
    if (messages.at(-1)?.role === 'user') {
      yield { type: 'text-delta', text: 'I look' };
      yield { type: 'text-delta', text: ' it up.' };
      yield { type: 'tool-call', callId: `call_${messages.length}`, name: 'weather', args: '{"city":"Lisbon"}' };
      yield { type: 'finish', reason: 'tool-calls' };
    } else {
      yield { type: 'text-delta', text: 'Dry & mild.' };
      yield { type: 'finish', reason: 'stop' };
    }
  },
};

const agent = createAgent({ model, tools: [weather] });
const conversation = await agent.open();
// #region use
const render = renderer((place, html) => console.log(place.padEnd(5), html || '(nothing)'));
merge(conversation.log$(), conversation.live$).pipe(withLiveText()).subscribe(render);
await conversation.send('Is it dry in Lisbon?').result;
await conversation.send('And now?').result;
// #endregion
await agent.close();
