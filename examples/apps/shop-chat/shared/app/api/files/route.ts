import { randomUUID } from 'node:crypto';
import { db } from '@/lib/db';
import { findUser } from '@/lib/login';

const MAX_BYTES = 5 * 1024 * 1024;

export async function POST(request: Request): Promise<Response> {
  if (findUser(request) === undefined) return new Response('Log in first', { status: 401 });
  const type = request.headers.get('content-type') ?? '';
  if (!/^image\/(png|jpeg|webp)$/.test(type)) return new Response('Send a picture', { status: 415 });
  if (!(Number(request.headers.get('content-length')) <= MAX_BYTES)) return new Response('Too large', { status: 413 });
  const id = randomUUID();
  db.prepare('INSERT INTO files VALUES (?, ?, ?)').run(id, type, new Uint8Array(await request.arrayBuffer()));
  return Response.json({ path: `/api/files/${id}` });
}
