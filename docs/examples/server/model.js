// #region model
/**
 * Repeats the message. Replace it by openai('gpt-5.2') of `runchart/openai`.
 * @type {import('runchart').Model}
 */
export const model = {
  id: 'script',
  async *stream({ messages }) {
    const [part] = messages.at(-1)?.content ?? [];
    yield { type: 'text-delta', text: `You wrote: ${part?.type === 'text' ? part.text : 'no text'}` };
    yield { type: 'finish', reason: 'stop' };
  },
};
// #endregion
