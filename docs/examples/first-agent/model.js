/** The model: OpenAI's API if there is a key or an address, and a script otherwise. */
import { openai } from 'runchart/openai';

/**
 * Asks for the weather, then quotes it.
 * @type {import('runchart').Model}
 */
const script = {
  id: 'script',
  async *stream({ messages }) {
    const last = messages.at(-1);
    const [part] = last?.role === 'tool' ? last.content : [];
    if (part?.type === 'text') yield { type: 'text-delta', text: `A light one: ${part.text}.` };
    else yield { type: 'tool-call', callId: 'call', name: 'weather', args: '{"city":"Lisbon"}' };
    yield { type: 'finish', reason: part ? 'stop' : 'tool-calls' };
  },
};

// #region choose
const { OPENAI_API_KEY, OPENAI_BASE_URL, OPENAI_MODEL } = process.env;
export const model = OPENAI_API_KEY || OPENAI_BASE_URL ? openai(OPENAI_MODEL ?? 'gpt-5.2') : script;
// #endregion
