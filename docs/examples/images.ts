/** Images in a message: what the log holds and what a model receives. It needs no key, no network and no sharp. */
// #region model
import { createAgent, type Model } from 'runchart';
import { jsonlStore } from 'runchart/node';

/** A script in place of a real model: it answers with the number of bytes that it received. */
const model: Model = {
  id: 'looking',
  imageLimits: { maxPixels: 1_568, mediaTypes: ['image/png', 'image/jpeg'] },
  async *stream({ messages }) {
    const [words, image] = messages.at(-1)?.content ?? [];
    const text = words?.type === 'text' ? words.text : '';
    const bytes = image?.type === 'image' ? atob(image.data).length : 0;
    yield { type: 'text-delta', text: `${text} A PNG of ${bytes} bytes.` };
    yield { type: 'finish', reason: 'stop' };
  },
};

// The bytes of a PNG. To send a file, use readFileSync('photo.png') of node:fs.
const redDot = Uint8Array.from(
  atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC'),
  (letter) => letter.charCodeAt(0),
);
// #endregion

// #region send
const agent = createAgent({ model, store: jsonlStore('sessions') });
const conversation = await agent.open('dots');
const run = conversation.send([
  { type: 'text', text: 'What is this?' },
  { type: 'image', mediaType: 'image/png', data: redDot },
]);
console.log(await run.text);

for (const entry of conversation.log()) {
  if (entry.type === 'user-message') console.log(entry.content[1]);
}
await agent.close();
// #endregion
