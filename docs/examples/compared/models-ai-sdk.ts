/** A chat server whose page chooses the model of each message. */
import { openai } from '@ai-sdk/openai';
import {
  convertToModelMessages,
  createUIMessageStreamResponse,
  streamText,
  toUIMessageStream,
  type UIMessage,
} from 'ai';

const models = new Map([['small', openai('gpt-5.2-mini')]]);

export async function POST(request: Request): Promise<Response> {
  const { messages, model } = (await request.json()) as { messages: UIMessage[]; model?: string };
  const chosen = model === undefined ? openai('gpt-5.2') : models.get(model);
  if (!chosen) return new Response('no such model', { status: 403 });
  const result = streamText({ model: chosen, messages: await convertToModelMessages(messages) });
  return createUIMessageStreamResponse({ stream: toUIMessageStream({ stream: result.stream }) });
}
