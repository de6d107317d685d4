/** A chat with its history. The request for it is authorized as the browser's own. */
import type { UIMessage } from 'ai';
import { headers } from 'next/headers';
import { chatHandler } from '../../../chatHandler';
import { Chat } from './chat';

export default async function Page({ params }: { params: Promise<{ id: string }> }) {
  const { id } = await params;
  const { cookie = '' } = Object.fromEntries(await headers());
  const history = await chatHandler(new Request(`http://localhost/api/chat/${id}`, { headers: { cookie } }));
  return <Chat id={id} history={(await history.json()) as UIMessage[]} />;
}
