/** The ladder: six bars in three places. Filled is durable, outlined is not yet; the word always stands beside it. */

import { type Ending, RUNGS, type Rung, isEnding, isRung } from "../text/words";

const COLOUR: Record<Rung | Ending | "none", string> = {
  none: "slate",
  queued: "slate",
  accepted: "blue",
  delivered: "teal",
  notified: "teal",
  engaged: "teal",
  processed: "green",
  dead: "red",
  rejected: "red",
  conflict: "violet",
  expired: "ochre",
  aborted: "quiet",
  cancelled: "quiet",
};

const HEIGHT = 12;

export interface LadderProps {
  /** The highest true rung; `none` for what only this tab has. */
  rung: Rung | "none";
  /** How it ended, if it did. */
  ending?: Ending | undefined;
  /** The share of several recipients that reached the next rung. */
  part?: number | undefined;
  /** Grey words after the word. */
  note?: string | undefined;
  small?: boolean;
}

export function Ladder({ rung, ending, part, note, small = false }: LadderProps) {
  const word = ending ?? rung;
  return (
    <span class={`ladder c-${COLOUR[word]}`}>
      <Bars rung={rung} ending={ending} part={part} small={small} />
      <span class="w">{rung === "none" ? "not stored yet" : word}</span>
      {note === undefined ? null : <span class="x">{note}</span>}
    </span>
  );
}

/** A ladder for any word the broker may use; an unknown one is shown as what it is. */
export function StandingLadder({ word, reached, ...rest }: { word: string; reached?: Rung } & Omit<LadderProps, "rung" | "ending">) {
  if (isRung(word)) return <Ladder rung={word} {...rest} />;
  if (isEnding(word)) return <Ladder rung={reached ?? "queued"} ending={word} {...rest} />;
  return <span class="ladder c-slate">{word.replaceAll("_", " ")}</span>;
}

export function colourOf(word: string): string {
  return isRung(word) || isEnding(word) ? COLOUR[word] : "slate";
}

function Bars({ rung, ending, part, small }: Required<Pick<LadderProps, "rung" | "small">> & Pick<LadderProps, "ending" | "part">) {
  const size = small ? { width: 9, height: 4, place: 6 } : { width: 13, height: 5, place: 8 };
  const reached = rung === "none" ? -1 : RUNGS.indexOf(rung);
  const y = (HEIGHT - size.height) / 2;
  let x = 0;
  const bars = RUNGS.map((name, step) => {
    const left = x;
    // The gaps after this host and after the broker are wider: three places.
    x += size.width + (step < 2 ? size.place : 2);
    if (step <= reached) {
      const fill = ending ? "var(--slate)" : "currentColor";
      return <rect key={name} x={left} y={y} width={size.width} height={size.height} rx={1.5} fill={fill} />;
    }
    if (ending && step === reached + 1) return <Mark key={name} ending={ending} x={left + size.width / 2} />;
    if (ending) {
      return <rect key={name} x={left} y={HEIGHT / 2 - 0.5} width={size.width} height={1} fill="var(--line-2)" />;
    }
    return (
      <g key={name}>
        <rect
          x={left + 0.5}
          y={y + 0.5}
          width={size.width - 1}
          height={size.height - 1}
          rx={1.2}
          fill="none"
          stroke="var(--pip)"
          stroke-dasharray={rung === "none" ? "2 2" : undefined}
        />
        {part && step === reached + 1 ? (
          <rect x={left} y={y} width={size.width * part} height={size.height} rx={1.5} fill="var(--teal)" />
        ) : null}
      </g>
    );
  });
  const width = x - 2;
  return (
    <svg width={width} height={HEIGHT} viewBox={`0 0 ${width} ${HEIGHT}`} aria-hidden="true">
      {bars}
    </svg>
  );
}

/** Who ended it: we did, they did, two truths, time, a person. */
function Mark({ ending, x }: { ending: Ending; x: number }) {
  const y = HEIGHT / 2;
  if (ending === "expired") {
    return <circle cx={x} cy={y} r={4} fill="none" stroke="currentColor" stroke-width={1.6} stroke-dasharray="1.6 1.6" />;
  }
  const path: Record<Exclude<Ending, "expired">, string> = {
    dead: `M${x - 3.5} ${y - 3.5}l7 7m0-7l-7 7`,
    rejected: `M${x - 4.5} ${y}a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0M${x - 3.2} ${y + 3.2}l6.4-6.4`,
    conflict: `M${x - 4} ${y - 2}h8M${x - 4} ${y + 2}h8M${x + 2} ${y - 5}l-4 10`,
    aborted: `M${x - 4} ${y}h8`,
    cancelled: `M${x - 4} ${y}h8`,
  };
  return <path d={path[ending]} fill="none" stroke="currentColor" stroke-width={1.8} stroke-linecap="round" />;
}
