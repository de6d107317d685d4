/** A chat server whose page can be reloaded in the middle of a reply. It needs Redis, and a database for `chats`. */
import { openai } from '@ai-sdk/openai';
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  generateId,
  streamText,
  toUIMessageStream,
  UI_MESSAGE_STREAM_HEADERS,
  type UIMessage,
} from 'ai';
import { createResumableStreamContext } from 'resumable-stream';
import { readChat, saveChat } from './chats.ts';

const streams = createResumableStreamContext({ waitUntil: null });

export const history = async (id: string): Promise<Response> => Response.json((await readChat(id)).messages);

export async function POST(request: Request): Promise<Response> {
  const { id, message } = (await request.json()) as { id: string; message: UIMessage };
  const messages = [...(await readChat(id)).messages, message];
  await saveChat(id, { messages, activeStreamId: null });
  const result = streamText({ model: openai('gpt-5.2'), messages: await convertToModelMessages(messages) });
  const stream = toUIMessageStream({
    stream: result.stream,
    originalMessages: messages,
    generateMessageId: generateId,
    onEnd: ({ messages: whole }) => saveChat(id, { messages: whole, activeStreamId: null }),
  });
  return createUIMessageStreamResponse({
    stream,
    async consumeSseStream({ stream: copy }) {
      const activeStreamId = generateId();
      await streams.createNewResumableStream(activeStreamId, () => copy);
      await saveChat(id, { activeStreamId });
    },
  });
}

/** `GET /api/chat/:id/stream` */
export async function GET(id: string): Promise<Response> {
  const { activeStreamId } = await readChat(id);
  if (activeStreamId === null) return new Response(null, { status: 204 });
  const stream = await streams.resumeExistingStream(activeStreamId);
  return new Response(stream?.pipeThrough(new TextEncoderStream()) ?? null, { headers: UI_MESSAGE_STREAM_HEADERS });
}
