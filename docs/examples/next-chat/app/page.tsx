/** Begins a chat. */
import { redirect } from 'next/navigation';

export const dynamic = 'force-dynamic';

export default function Page() {
  redirect(`/chat/${crypto.randomUUID()}`);
}
