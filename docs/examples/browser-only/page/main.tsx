/** The page: a list of conversations beside the open one, whose id is in the address. */
import { StrictMode, useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';
import type { ConversationInfo } from 'runchart';
// #region open
import { connect } from 'runchart/client';
import { useAgent } from 'runchart/react';
import { Chat } from './chat.tsx';

const client = connect({ baseURL: `${location.origin}/api` });

function OpenChat({ id }: { id: string }) {
  const conversation = useAgent(client, id);
  return conversation ? <Chat conversation={conversation} /> : <p>Connecting …</p>;
}
// #endregion

const newId = (): string => crypto.randomUUID();
const idInAddress = (): string => location.hash.slice(1);

function useAddress(): string {
  const [id, setId] = useState(idInAddress);
  useEffect(() => {
    const change = (): void => setId(idInAddress());
    addEventListener('hashchange', change);
    return () => removeEventListener('hashchange', change);
  }, []);
  return id;
}

/** Asks again every few seconds, and when another conversation is opened. */
function useHistory(id: string): readonly ConversationInfo[] {
  const [rows, setRows] = useState<readonly ConversationInfo[]>([]);
  useEffect(() => {
    const ask = (): void => void client.list({ limit: 30 }).then(setRows, () => {});
    ask();
    const timer = setInterval(ask, 3000);
    return () => clearInterval(timer);
  }, [id]);
  return rows;
}

function App() {
  const id = useAddress();
  const rows = useHistory(id);
  return (
    <div className="app">
      <nav>
        <a className="new" href={`#${newId()}`}>
          New chat
        </a>
        {rows.map((row) => (
          <a key={row.id} href={`#${row.id}`} aria-current={row.id === id ? 'page' : undefined}>
            {row.title ?? 'Empty'}
            {row.status === 'idle' ? '' : ` (${row.status})`}
          </a>
        ))}
      </nav>
      <main>{id ? <OpenChat key={id} id={id} /> : <p>Open a chat, or begin one.</p>}</main>
    </div>
  );
}

const root = document.getElementById('root');
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
