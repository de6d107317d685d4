/** The model of the tutorial: a script, so that no key is needed. */
// #region model
import type { Model } from 'runchart';

/** Calls the tool that fits the message, then repeats the result of the tool. */
export const model: Model = {
  id: 'script',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.content ?? [];
    const text = part?.type === 'text' ? part.text : '';
    if (last?.role === 'user') {
      const isTransfer = /pay/i.test(text);
      yield {
        type: 'tool-call',
        callId: 'call',
        name: isTransfer ? 'transfer' : 'balance',
        args: isTransfer ? '{"to":"the landlord","euros":900}' : '{}',
      };
      yield { type: 'finish', reason: 'tool-calls' };
    } else {
      yield { type: 'text-delta', text: `The bank says: ${text}` };
      yield { type: 'finish', reason: 'stop' };
    }
  },
};
// #endregion
