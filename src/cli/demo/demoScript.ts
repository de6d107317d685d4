/**
 * The replies of the demo's model. Invariant: a pure function of the last messages of the request. It quotes the
 * tool's result, which proves that the real result arrived.
 */
interface ChatMessage {
  role: string;
  content?: unknown;
  tool_call_id?: string;
}
export interface ChatRequest {
  model: string;
  messages: readonly ChatMessage[];
}
interface ScriptedReply {
  words: string;
  call?: { id: string; name: string; args: { [key: string]: string } };
}

export const QUESTION = 'Read main.go and tell me what it does';
export const ORDER = 'Write that down in SUMMARY.md';

const SUMMARY =
  'The program counts the words of its standard input, without regard to case, and prints each word with its count, ' +
  'the most frequent first.';

const READ = { id: 'call_1', name: 'Read', args: { file_path: 'main.go' } };
const WRITE = { id: 'call_2', name: 'WriteNote', args: { file_name: 'SUMMARY.md', text: `${SUMMARY}\n` } };

const textOf = ({ content }: ChatMessage): string => (typeof content === 'string' ? content : JSON.stringify(content));

/** Replies to the last message: one of the user, or the result of a call. */
export function scriptedReply({ messages }: ChatRequest): ScriptedReply {
  const last = messages.at(-1) ?? { role: 'none' };
  if (last.role === 'tool') return last.tool_call_id === WRITE.id ? written(textOf(last)) : readDone(textOf(last));
  if (last.role !== 'user') return { words: 'I can only answer a message.' };
  if (textOf(last) === QUESTION) return { words: "I'll read the file.", call: READ };
  if (textOf(last) === ORDER) return { words: "I'll write the summary down.", call: WRITE };
  return { words: `I am a script and know two requests: "${QUESTION}" and "${ORDER}".` };
}

function readDone(result: string): ScriptedReply {
  const functions = [...result.matchAll(/\bfunc (\w+)\(/g)].map(([, name]) => name);
  if (functions.length === 0) return { words: `The file could not be read: ${result.slice(0, 200)}` };
  const names = functions.length === 1 ? `is one function, ${functions[0]}` : `are ${functions.join(' and ')}`;
  return {
    words: `This is a Go program in package main. ${SUMMARY} Its parts ${names}: the first fills the map of counts, the other sorts and prints it.`,
  };
}

function written(result: string): ScriptedReply {
  if (result.startsWith('[tool error]')) return { words: 'Understood: I wrote nothing.' };
  return { words: `Done. ${result}` };
}
