/** Line drawings; decoration only, the word always stands beside them or in a label. */

import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg class="i" viewBox="0 0 16 16" aria-hidden="true">
      {children}
    </svg>
  );
}

export const icons = {
  conversations: <Icon><path d="M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z" /></Icon>,
  agents: (
    <Icon>
      <circle cx="8" cy="3.5" r="1.8" />
      <circle cx="3.3" cy="12" r="1.8" />
      <circle cx="12.7" cy="12" r="1.8" />
      <path d="M7.1 5.1 4.2 10.4M8.9 5.1l2.9 5.3M5.1 12h5.8" />
    </Icon>
  ),
  outbox: <Icon><path d="M2.5 9.5V13h11V9.5h-3.2L9.4 11H6.6l-.9-1.5zM8 8V2.5M5.5 5 8 2.5 10.5 5" /></Icon>,
  conflicts: <Icon><path d="M3 6h10M3 10h10M10.5 3l-5 10" /></Icon>,
  explain: (
    <Icon>
      <circle cx="3.5" cy="12" r="1.5" />
      <circle cx="12.5" cy="4" r="1.5" />
      <path d="M5 12h3.5a2 2 0 0 0 0-4h-1a2 2 0 0 1 0-4H11" />
    </Icon>
  ),
  health: <Icon><path d="M1.5 8.5h3l2-5 3 9 2-4h3" /></Icon>,
  search: <Icon><circle cx="7" cy="7" r="4" /><path d="m10 10 3.5 3.5" /></Icon>,
  copy: <Icon><rect x="5.5" y="5.5" width="7.5" height="7.5" rx="1.5" /><path d="M10.5 3h-6A1.5 1.5 0 0 0 3 4.5v6" /></Icon>,
  back: <Icon><path d="M10 3 5 8l5 5" /></Icon>,
  close: <Icon><path d="m4 4 8 8M12 4l-8 8" /></Icon>,
  resume: <Icon><path d="M3 8h10M9.5 4.5 13 8l-3.5 3.5" /></Icon>,
  reply: <Icon><path d="M6.5 3.5 3 7l3.5 3.5M3 7h6a4 4 0 0 1 4 4v1.5" /></Icon>,
  help: <Icon><path d="M5.8 6a2.2 2.2 0 1 1 3.2 2c-.7.4-1 .8-1 1.5" /><circle cx="8" cy="12.2" r=".4" /></Icon>,
};

/** Three places, the last one in two: the ladder as a mark. */
export function Brand() {
  return (
    <svg class="mark" width="22" height="8" viewBox="0 0 22 8" fill="currentColor" aria-hidden="true">
      <rect width="5" height="8" rx="1.5" />
      <rect x="8" width="5" height="8" rx="1.5" />
      <rect x="16" width="2.4" height="8" rx="1" />
      <rect x="19.6" width="2.4" height="8" rx="1" />
    </svg>
  );
}
