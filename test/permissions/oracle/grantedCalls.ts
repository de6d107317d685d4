/** Calls a tool of the library with the granted permissions, as the executor does. */
import type { Json } from '../../../src/index.ts';
import { codingTools } from '../../../src/tools/coding/index.ts';
import { answerOf, type CallGrant, definitionOf } from '../../../src/tools/tool.ts';

const tools = new Map(codingTools({ sandbox: 'auto' }).map((tool) => [tool.name, definitionOf(tool)]));

export async function callTool(
  name: string,
  args: object,
  { cwd, grant, conversationId = 'c' }: { cwd: string; grant?: CallGrant; conversationId?: string },
): Promise<{ text: string; code: string }> {
  const definition = tools.get(name);
  if (!definition) throw new Error(`no tool is named ${name}`);
  const checked = await definition.parameters['~standard'].validate(args);
  if (checked.issues !== undefined) return { text: '', code: 'invalid_arguments' };
  const answer = answerOf(
    await definition.execute(
      checked.value as Json,
      {
        ...{
          callId: 'c1',
          conversationId,
          runId: 'r',
          cwd,
          idempotencyKey: 'k',
          state: {},
          origin: { messageId: 'm' },
        },
        ...{
          signal: new AbortController().signal,
          progress: () => undefined,
          now: () => 0,
          sleep: async () => undefined,
        },
        ...(grant && { grant, ...(grant.outside !== undefined && { outside: grant.outside }) }),
      } as Parameters<typeof definition.execute>[1],
    ),
  );
  if (!answer || answer.status === 'pending') return { text: '', code: 'pending' };
  const { content } = answer;
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return { text, code: 'code' in answer && typeof answer.code === 'string' ? answer.code : '' };
}
