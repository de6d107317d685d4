/** A chat server with a tool that needs approval, and the history of each chat. */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { openai } from '@ai-sdk/openai';
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  isStepCount,
  streamText,
  tool,
  toUIMessageStream,
  type UIMessage,
  validateUIMessages,
} from 'ai';
import * as z from 'zod';

const tools = {
  transfer: tool({
    description: 'Sends money.',
    inputSchema: z.object({ to: z.string(), euros: z.number() }),
    execute: ({ to, euros }) => `sent ${euros} euros to ${to}`,
  }),
};

function fileOf(id: string): string {
  if (!/^[\w-]+$/.test(id)) throw new Error('no chat id');
  return `.chats/${id}.json`;
}

async function loadChat(id: string): Promise<UIMessage[]> {
  const text = await readFile(fileOf(id), 'utf8').catch(() => '[]');
  return JSON.parse(text) as UIMessage[];
}

async function saveChat(id: string, messages: UIMessage[]): Promise<void> {
  await mkdir('.chats', { recursive: true });
  await writeFile(fileOf(id), JSON.stringify(messages));
}

export const GET = async (id: string): Promise<Response> => Response.json(await loadChat(id));

export async function POST(request: Request): Promise<Response> {
  const { id, message } = (await request.json()) as { id: string; message: UIMessage };
  // An approval comes back in the assistant's message, which the history has already.
  const earlier = (await loadChat(id)).filter((each) => each.id !== message.id);
  const messages = await validateUIMessages({ messages: [...earlier, message], tools });
  const result = streamText({
    model: openai('gpt-5.2'),
    messages: await convertToModelMessages(messages),
    tools,
    toolApproval: { transfer: 'user-approval' },
    ...(process.env.TOOL_APPROVAL_SECRET && { experimental_toolApprovalSecret: process.env.TOOL_APPROVAL_SECRET }),
    stopWhen: isStepCount(20),
  });
  const stream = toUIMessageStream({
    stream: result.stream,
    originalMessages: messages,
    generateMessageId: generateId,
    onEnd: ({ messages: whole }) => saveChat(id, whole),
  });
  return createUIMessageStreamResponse({ stream });
}
