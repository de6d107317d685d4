/**
 * What a request of the model suite must contain when it reaches the server. Invariant: only the public format of chat
 * completions counts, so each adapter may add fields.
 */
import assert from 'node:assert/strict';

export interface ReceivedRequest {
  messages?: {
    role: string;
    content?: unknown;
    tool_call_id?: string;
    tool_calls?: { id?: string; function?: { name?: string; arguments?: string } }[];
  }[];
  tools?: { function?: { name: string; description?: string; parameters?: { properties?: object } } }[];
}

/** Asserts that each text, call and schema has arrived. A content is a text or a list of parts. */
export function hasContents({ messages = [], tools = [] }: ReceivedRequest): void {
  const calls = messages.flatMap(({ tool_calls: list = [] }) => list);
  assert.deepEqual(
    calls.map((call) => [call.id, call.function?.name, JSON.parse(call.function?.arguments ?? 'null')]),
    [
      ['a', 'look', { at: 'a' }],
      ['b', 'look', { at: 'b' }],
    ],
  );
  for (const [index, text] of Object.entries({ 0: 'be brief', 1: 'go', 3: 'saw a', 4: 'saw b' })) {
    const { role, content } = messages[Number(index)] ?? {};
    assert.ok(JSON.stringify(content ?? null).includes(text), `the text of the ${role} message is not ${text}`);
  }
  const [look] = tools;
  assert.equal(look?.function?.description, 'looks at a place');
  assert.deepEqual(Object.keys(look?.function?.parameters?.properties ?? {}), ['at']);
}
