import type { ReactNode } from 'react';
import './shop.css';

export const metadata = { title: 'Shop' };

export default function Layout({ children }: { children: ReactNode }) {
  return (
    <html lang="en">
      <body>{children}</body>
    </html>
  );
}
