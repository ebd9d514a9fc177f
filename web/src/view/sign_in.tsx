/** Nobody is signed in: how to be. */

import { session } from "../state/broker";
import { Brand } from "./icons";
import { Cmd } from "./parts";

export function SignIn() {
  const now = session.value;
  return (
    <main class="gate" id="main">
      <div class="note">
        <p class="brand">
          <Brand /> postrider
        </p>
        <Words />
        {now.kind === "out" ? <Cmd line="postrider signin" /> : null}
      </div>
    </main>
  );
}

function Words() {
  const now = session.value;
  if (now.kind === "reading") return <p>Reading…</p>;
  if (now.kind === "away") {
    return (
      <>
        <h1>The broker does not answer</h1>
        <p>This page tries again by itself. Queued messages stay on their hosts' disks meanwhile.</p>
      </>
    );
  }
  if (now.kind === "out" && now.refused !== undefined) {
    return (
      <>
        <h1>This link does not sign in</h1>
        <p>{now.refused} A link works once, within 15 minutes. Ask for another one on the host of this home:</p>
      </>
    );
  }
  return (
    <>
      <h1>Sign in</h1>
      <p>Nobody is signed in in this browser. On the host of this home, this prints a link:</p>
    </>
  );
}
