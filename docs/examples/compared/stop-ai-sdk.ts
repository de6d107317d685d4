/** A Stop button that ends the reply on the server and keeps what was shown, if one process has all requests. */
import { openai } from '@ai-sdk/openai';
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  streamText,
  toUIMessageStream,
  type UIMessage,
} from 'ai';
import { readChat, saveChat } from './chats.ts';

const running = new Map<string, AbortController>();

export async function POST(request: Request): Promise<Response> {
  const { id, message } = (await request.json()) as { id: string; message: UIMessage };
  const messages = [...(await readChat(id)).messages, message];
  await saveChat(id, { messages });
  const controller = new AbortController();
  running.set(id, controller);
  const result = streamText({
    model: openai('gpt-5.2'),
    messages: await convertToModelMessages(messages),
    abortSignal: controller.signal,
  });
  const stream = toUIMessageStream({
    stream: result.stream,
    originalMessages: messages,
    generateMessageId: generateId,
    async onEnd({ messages: whole }) {
      if (running.get(id) === controller) running.delete(id);
      await saveChat(id, { messages: whole });
    },
  });
  return createUIMessageStreamResponse({
    stream,
    // A page that disconnects does not end the reply.
    consumeSseStream: ({ stream: copy }) => copy.pipeTo(new WritableStream()),
  });
}

/** `POST /api/chat/:id/stop` */
export function stop(id: string): Response {
  running.get(id)?.abort();
  return Response.json({ success: true });
}

/** In the page, beside `stop()` of `useChat`. */
export const stopReply = (id: string): Promise<Response> => fetch(`/api/chat/${id}/stop`, { method: 'POST' });
