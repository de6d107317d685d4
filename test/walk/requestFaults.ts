/**
 * The faults that a strict chat completions server refuses. Invariant: it checks only the wire format, and is stricter
 * than any one provider. A fault is a sentence, and every fault is a 400.
 */
type Fields = { readonly [key: string]: unknown };

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const isText = (value: unknown): value is string => typeof value === 'string' && value !== '';

function objectText(value: unknown): boolean {
  if (!isText(value)) return false;
  try {
    return isFields(JSON.parse(value));
  } catch {
    return false;
  }
}

function callFaults(call: unknown, seen: Set<string>): string[] {
  if (!isFields(call) || call.type !== 'function' || !isFields(call.function))
    return ['a tool call of an unknown form'];
  const { id } = call;
  const faults: string[] = [];
  if (!isText(id) || id.length > 256) faults.push('a tool call without an id');
  else if (seen.has(id)) faults.push(`the id ${id} is repeated`);
  else seen.add(id);
  if (!isText(call.function.name) || !/^[\w.:/-]{1,128}$/.test(call.function.name)) faults.push(`${id} has no name`);
  if (!objectText(call.function.arguments)) faults.push(`the arguments of ${id} are not the text of an object`);
  return faults;
}

/** Reads the messages in order, with the ids that wait for their result. */
class Reader {
  readonly faults: string[] = [];
  readonly #seen = new Set<string>();
  #due: string[] = [];

  read(message: unknown, index: number): void {
    if (!isFields(message)) return void this.faults.push(`message ${index} is no object`);
    const { role } = message;
    if (role !== 'tool') this.settled(index);
    if (role === 'system') this.#say(index > 0, 'a system message after others');
    else if (role === 'user') this.#user(message);
    else if (role === 'assistant') this.#assistant(message);
    else if (role === 'tool') this.#result(message);
    else this.faults.push(`message ${index} has the role ${String(role)}`);
  }

  /** No call may wait at this place. */
  settled(index: number): void {
    this.#say(this.#due.length > 0, `message ${index} is in the place of the results of ${this.#due.join()} are due`);
    this.#due = [];
  }

  #say(when: boolean, fault: string): void {
    if (when) this.faults.push(fault);
  }

  #user({ content }: Fields): void {
    const parts = Array.isArray(content) && content.length > 0 && content.every(isFields);
    const filled = parts && content.every((part) => part.type !== 'text' || isText(part.text));
    this.#say(!isText(content) && !filled, 'a user message without content');
  }

  #assistant({ content, tool_calls: calls }: Fields): void {
    if (calls === undefined) return this.#say(!isText(content), 'an empty assistant message');
    if (!Array.isArray(calls) || calls.length === 0) return void this.faults.push('an empty list of tool calls');
    this.#say(content !== null && !isText(content), 'an assistant message with empty text');
    for (const call of calls) {
      this.faults.push(...callFaults(call, this.#seen));
      if (isFields(call) && isText(call.id)) this.#due.push(call.id);
    }
  }

  #result({ tool_call_id: id, content }: Fields): void {
    const [next] = this.#due;
    if (id === next) this.#due.shift();
    else this.faults.push(`a result of ${String(id)} where ${next ?? 'none'} is due`);
    this.#say(typeof content !== 'string', `the result of ${String(id)} is no text`);
  }
}

/** The faults in messages of the wire. `last` is false if the model is not called with them. */
export function messageFaults(messages: unknown, last = true): string[] {
  if (!Array.isArray(messages) || messages.length === 0) return ['no messages'];
  const reader = new Reader();
  for (const [index, message] of messages.entries()) reader.read(message, index);
  reader.settled(messages.length);
  const final = messages.at(-1);
  if (last && isFields(final) && final.role === 'assistant') reader.faults.push('the last message is the assistant’s');
  return reader.faults;
}

export function requestFaults(body: unknown): string[] {
  if (!isFields(body)) return ['the body is no object'];
  const { model, messages, tools, stream } = body;
  const faults = messageFaults(messages);
  if (!isText(model)) faults.push('no model');
  if (stream !== true) faults.push('not streamed');
  if (tools === undefined) return faults;
  const names = Array.isArray(tools)
    ? tools.map((tool) => (isFields(tool) && isFields(tool.function) ? tool.function.name : ''))
    : [];
  if (names.length === 0 || !names.every(isText) || new Set(names).size < names.length)
    faults.push('tools of an unknown form');
  return faults;
}
