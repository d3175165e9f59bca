(** Functions by exponentials and logarithms.

    Equal values are found by polynomial identities, so that it matters by which values functions are written.
    The logistic function is 1/(1 + exp(-a)) always. In a [deep] state, exponentials of sums are products,
    logarithms of products are sums, and functions of exponentials are written by these. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals RMicromega PArith FMapPositive.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadStatements.
Import ListNotations.
Open Scope R_scope.

(** ** Exponentials, logarithms and hyperbolic functions *)

Definition FUEL : nat := 50.

Opaque invert.

Definition half : Q := 1 # 2.

Lemma half_ok : Q2R half = / 2.
Proof. unfold half, Q2R. simpl. lra. Qed.

(** −a; if a is −b, then b. *)
Definition opposite (o : option op) : option positive :=
  match o with Some (OOpp b) => Some b | _ => None end.

Definition negate (a : positive) (s : state) : positive * state :=
  match opposite (M.find a (table s)) with Some b => (b, s) | None => emit (OOpp a) s end.

Lemma gen_negate a s k s' : negate a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = - v a).
Proof.
  unfold negate. destruct (opposite _) as [b|] eqn:Q.
  - destruct (M.find a (table s)) as [o|] eqn:F; [|discriminate]. destruct o; try discriminate.
    inversion Q; subst; clear Q. intros E; inversion E; subst. apply gen_here. intros T v S.
    rewrite (in_table s' a _ v T S F). simpl. ring.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

(** exp(a), as 1/exp(−a) if the fingerprint of a counts as [negative]. *)
Definition signed_exp (a : positive) (s : state) : positive * state :=
  if negative (print_of (prints s) a) then
    let (m, s) := negate a s in
    let (e, s) := emit (OApp Exp m) s in emit (OApp Inv e) s
  else emit (OApp Exp a) s.

Lemma gen_signed_exp a s k s' :
  signed_exp a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = exp (v a)).
Proof.
  unfold signed_exp. destruct (negative _).
  - repeat step_gen. intros E2.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_negate _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
      (gen_emit _ _ _ _ E2))).
    apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op value1 domain1].
    + intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. rewrite C2. apply Rgt_not_eq, exp_pos.
    + intros _ v _ (C1 & C2 & C3). rewrite C3, C2, C1, exp_Ropp. apply Rinv_inv.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

(** The natural number that a value is, if it is a small one. *)
Definition natural (t : M.t op) (k : positive) : option nat :=
  match M.find k t with
  | Some (OConst (Qmake (Zpos n) 1)) => if Pos.leb n 40 then Some (Pos.to_nat n) else None
  | _ => None
  end.

Definition multiple (t : M.t op) (b c : positive) : option (nat * positive) :=
  match natural t b with
  | Some n => Some (n, c)
  | None => match natural t c with Some n => Some (n, b) | None => None end
  end.

Lemma natural_ok s v k n : table_ok s -> Sat v (written s) -> natural (table s) k = Some n -> v k = INR n.
Proof.
  unfold natural. intros T S H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
  destruct o as [[[|m|m] [d|d|]]| | | | | | |]; try discriminate. destruct (Pos.leb m 40); [|discriminate].
  inversion H; subst. rewrite (in_table s k _ v T S F), INR_IZR_INZ, positive_nat_Z. cbn [evalop]. unfold Q2R. simpl.
  field.
Qed.

Lemma multiple_ok s v b c n d : table_ok s -> Sat v (written s) -> multiple (table s) b c = Some (n, d) ->
  v b * v c = INR n * v d.
Proof.
  unfold multiple. intros T S H. destruct (natural (table s) b) as [m|] eqn:B.
  - inversion H; subst. now rewrite (natural_ok s v b n T S B).
  - destruct (natural (table s) c) as [m|] eqn:C; [|discriminate]. inversion H; subst.
    rewrite (natural_ok s v c n T S C). ring.
Qed.

(** exp(a) by products: exp(b + c) is exp(b) exp(c), exp(−b) is 1/exp(b), exp(n b) is exp(b)^n, exp(log d) is d
    if d is positive. *)
Fixpoint exps (fuel : nat) (a : positive) (s : state) : positive * state :=
  match fuel with
  | O => signed_exp a s
  | S fuel =>
    match M.find a (table s) with
    | Some (OAdd b c) =>
      let (i, s) := exps fuel b s in let (j, s) := exps fuel c s in emit (OMul i j) s
    | Some (OOpp b) => let (i, s) := exps fuel b s in invert FUEL i s
    | Some (OMul b c) =>
      match multiple (table s) b c with
      | Some (n, d) => let (i, s) := exps fuel d s in emit (OPow i n) s
      | None => signed_exp a s
      end
    | Some (OApp Log d) => if is_above (table s) d then (d, s) else emit (OApp Exp a) s
    | _ => signed_exp a s
    end
  end.

Lemma exp_multiple n x : exp (INR n * x) = exp x ^ n.
Proof.
  induction n as [|n IH]; [simpl; rewrite Rmult_0_l; apply exp_0|].
  rewrite S_INR, Rmult_plus_distr_r, Rmult_1_l, exp_plus, IH. simpl. ring.
Qed.

Lemma gen_exps fuel : forall a s k s', exps fuel a s = (k, s') ->
  gen s s' (fun _ => True) (fun v => v k = exp (v a)).
Proof.
  induction fuel as [|fuel IH]; intros a s k s'; cbn [exps]; [apply gen_signed_exp|].
  destruct (M.find a (table s)) as [o|] eqn:F; [|apply gen_signed_exp].
  assert (L : forall v s', (exists e, written s' = e ++ written s) -> table_ok s -> Sat v (written s') -> v a = evalop v o).
  { intros v s1 X T S. apply (in_table s a o v T); [exact (Sat_ext v _ _ X S) | exact F]. }
  destruct o as [q| |b c|b c|b|b n|f d|g b c]; try apply gen_signed_exp.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E0) (gen_emit _ _ _ _ E3))).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
    intros T v S (C1 & C2 & C3). rewrite C3. cbn [evalop]. rewrite C2, C1, (L v s' X T S). cbn [evalop].
    now rewrite exp_plus.
  - destruct (multiple (table s) b c) as [[n d]|] eqn:Q; [|apply gen_signed_exp]. step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_emit _ _ _ _ E3)).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
    intros T v S (C1 & C2). rewrite C2. cbn [evalop]. rewrite C1, (L v s' X T S). cbn [evalop].
    rewrite (multiple_ok s v b c n d T (Sat_ext v _ _ X S) Q). now rewrite exp_multiple.
  - step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_invert _ _ _ _ _ E3)).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G).
    + intros v _. split; [exact I|]. intros C1. rewrite C1. apply Rgt_not_eq, exp_pos.
    + intros T v S (C1 & C2). rewrite C2, C1, (L v s' X T S). cbn [evalop]. now rewrite exp_Ropp.
  - destruct f; try apply gen_signed_exp. destruct (is_above (table s) d) eqn:P.
    + intros E; inversion E; subst. apply gen_here. intros T v S.
      rewrite (L v s' (ex_intro _ [] eq_refl) T S). cbn [evalop value1]. symmetry. apply exp_ln.
      now apply (is_above_ok s').
    + intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

Definition exponential (a : positive) (s : state) : positive * state :=
  if deep s then exps 12 a s else signed_exp a s.

Lemma gen_exponential a s k s' :
  exponential a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = exp (v a)).
Proof. unfold exponential. destruct (deep s); [apply gen_exps | apply gen_signed_exp]. Qed.

Opaque exps.

(** σ(a) is 1/(1 + exp(−a)). *)
Definition logistic (a : positive) (s : state) : positive * state :=
  let (m, s) := negate a s in
  let (e, s) := exponential m s in
  let (i, s) := emit (OConst 1) s in
  let (d, s) := emit (OAdd i e) s in invert FUEL d s.

Lemma gen_logistic a s k s' :
  logistic a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = sigmoid (v a)).
Proof.
  unfold logistic. repeat step_gen. intros E4.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_negate _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E0)
    (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
    (gen_invert _ _ _ _ _ E4))))).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op value1 domain1].
  - intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. split; [exact I|]. intros C3.
    split; [exact I|]. intros C4. rewrite C4, C3, C2, RMicromega.Q2R_1. generalize (exp_pos (v p)). lra.
  - intros T v S (C1 & C2 & C3 & C4 & C5). rewrite C5, C4, C3, C2, C1, RMicromega.Q2R_1. reflexivity.
Qed.

(** tanh(a/2) is 2 σ(a) − 1. *)
Definition halved (t : M.t op) (b : positive) : option positive :=
  match M.find b t with
  | Some (OMul a h) =>
    match M.find h t with
    | Some (OConst q) => if Qeq_bool q half then Some a else None
    | _ => None
    end
  | _ => None
  end.

Definition by_logistic (a : positive) (s : state) : positive * state :=
  let (w, s) := logistic a s in
  let (c, s) := emit (OConst 2) s in
  let (d, s) := emit (OMul c w) s in
  let (i, s) := emit (OConst (-1)) s in emit (OAdd d i) s.

Definition tanh_of (b : positive) (s : state) : positive * state :=
  match halved (table s) b with
  | Some a => by_logistic a s
  | None =>
    if deep s then
      let (c, s) := emit (OConst 2) s in let (a, s) := emit (OMul c b) s in by_logistic a s
    else emit (OApp Tanh b) s
  end.

(** tanh(−b) is −tanh(b). *)
Definition hyperbolic (b : positive) (s : state) : positive * state :=
  match opposite (M.find b (table s)) with
  | Some c => let (h, s) := tanh_of c s in negate h s
  | None => tanh_of b s
  end.

Lemma halved_ok s b a v : table_ok s -> Sat v (written s) -> halved (table s) b = Some a -> v b = v a * / 2.
Proof.
  unfold halved. intros T S H. destruct (M.find b (table s)) as [o|] eqn:F; [|discriminate].
  destruct o as [| | |x y| | | |]; try discriminate. destruct (M.find y (table s)) as [o|] eqn:F2; [|discriminate].
  destruct o as [q| | | | | | |]; try discriminate. destruct (Qeq_bool q half) eqn:E; [|discriminate].
  inversion H; subst. rewrite (in_table s b _ v T S F). simpl. rewrite (in_table s y _ v T S F2). simpl.
  apply Qeq_true in E. now rewrite E, half_ok.
Qed.

Lemma gen_by_logistic a s k s' :
  by_logistic a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = tanh (v a * / 2)).
Proof.
  unfold by_logistic. repeat step_gen. intros E4.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_logistic _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
    (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
    (gen_emit _ _ _ _ E4))))).
  apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
  intros T v S (C1 & C2 & C3 & C4 & C5). rewrite C5. cbn [evalop]. rewrite C4, C3. cbn [evalop].
  rewrite C2, C1. cbn [evalop]. rewrite tanh_half. unfold Q2R. simpl. field.
Qed.

Lemma gen_tanh_of b s k s' :
  tanh_of b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = tanh (v b)).
Proof.
  unfold tanh_of. destruct (halved (table s) b) as [a|] eqn:H.
  - intros E. apply gen_by_logistic in E. assert (X := gen_ext _ _ _ _ E).
    apply (gen_weaken _ _ _ _ _ _ E); auto. intros T v S C.
    now rewrite C, (halved_ok s b a v T (Sat_ext v _ _ X S) H).
  - destruct (deep s).
    + repeat step_gen. intros E1.
      assert (G := gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
        (gen_by_logistic _ _ _ _ E1))).
      apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
      intros T v S (C1 & C2 & C3). rewrite C3, C2. cbn [evalop]. rewrite C1. cbn [evalop].
      f_equal. unfold Q2R. simpl. field.
    + intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

Lemma gen_hyperbolic b s k s' :
  hyperbolic b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = tanh (v b)).
Proof.
  unfold hyperbolic. destruct (opposite _) as [c|] eqn:Q; [|apply gen_tanh_of].
  destruct (M.find b (table s)) as [o|] eqn:F; [|discriminate]. destruct o; try discriminate.
  inversion Q; subst; clear Q. step_gen. intros E1.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_tanh_of _ _ _ _ E) (gen_negate _ _ _ _ E1)).
  assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|]. intros T v S (C1 & C2).
  rewrite C2, C1, (in_table s b _ v T (Sat_ext v _ _ X S) F). cbn [evalop]. now rewrite tanh_opp.
Qed.

(** With each sech, the tanh of its argument is computed, and the number of its statement is recorded. *)
Definition remember (b h : positive) (s : state) : state :=
  State (next s) (written s) (table s) (prints s) (M.add b h (tanhs s)) (deep s).

Definition sech_of (b : positive) (s : state) : positive * state :=
  let (h, s) := hyperbolic b s in emit (OApp Sech b) (remember b h s).

Lemma gen_sech_of b s k s' :
  sech_of b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = sech (v b)).
Proof.
  unfold sech_of. destruct (hyperbolic b s) as [h s1] eqn:E. apply gen_hyperbolic in E.
  destruct E as [T X C D]. intros E1. apply gen_emit in E1. destruct E1 as [T1 X1 C1 D1].
  assert (R : table_ok s -> table_ok (remember b h s1)).
  { intros T0. destruct (T T0) as [A B]. split; [exact A|]. unfold remember; cbn [tanhs written].
    intros j m F v S. destruct (Pos.eq_dec j b) as [->|N].
    - rewrite M.gss in F. inversion F; subst. now apply C.
    - rewrite M.gso in F by assumption. now apply (B j m F v S). }
  split.
  - auto.
  - destruct X as [e E], X1 as [e1 E1]. exists (e1 ++ e). rewrite E1. unfold remember; cbn [written].
    now rewrite E, app_assoc.
  - intros T0 v S. now apply (C1 (R T0) v S).
  - intros T0 v S D0 _. apply D1; auto; [|exact I]. apply D; auto.
    eapply (Sat_ext v (remember b h s1) s'); eauto.
Qed.

Definition with_tanh (b : positive) (s : state) : positive * state :=
  match opposite (M.find b (table s)) with Some c => sech_of c s | None => sech_of b s end.

Lemma gen_with_tanh b s k s' :
  with_tanh b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = sech (v b)).
Proof.
  unfold with_tanh. destruct (opposite _) as [c|] eqn:Q; [|apply gen_sech_of].
  destruct (M.find b (table s)) as [o|] eqn:F; [|discriminate]. destruct o; try discriminate.
  inversion Q; subst; clear Q. intros E. apply gen_sech_of in E. assert (X := gen_ext _ _ _ _ E).
  apply (gen_weaken _ _ _ _ _ _ E); auto. intros T v S C.
  rewrite C, (in_table s b _ v T (Sat_ext v _ _ X S) F). cbn [evalop]. now rewrite sech_opp.
Qed.

(** ln(a) by sums: ln(b c) is ln(b) + ln(c) and ln(b^n) is n ln(b) for positive b and c, ln(1/b) is −ln(b), and
    ln(exp(b)) is b. Of ln(1 + e) and ln(e) + ln(1 + 1/e), the fingerprints of e and 1/e choose one. *)
Definition not_one (t : M.t op) (b c : positive) : option positive :=
  if is_one t b then Some c else if is_one t c then Some b else None.

Fixpoint logs (fuel : nat) (a : positive) (s : state) : positive * state :=
  match fuel with
  | O => emit (OApp Log a) s
  | S fuel =>
    match M.find a (table s) with
    | Some (OMul b c) =>
      if is_above (table s) b && is_above (table s) c then
        let (i, s) := logs fuel b s in let (j, s) := logs fuel c s in emit (OAdd i j) s
      else emit (OApp Log a) s
    | Some (OPow b n) =>
      if is_above (table s) b && Nat.leb n 40 then
        let (i, s) := logs fuel b s in
        let (j, s) := emit (OConst (inject_Z (Z.of_nat n))) s in emit (OMul j i) s
      else emit (OApp Log a) s
    | Some (OApp Inv b) => let (i, s) := logs fuel b s in negate i s
    | Some (OApp Exp b) => (b, s)
    | Some (OAdd b c) =>
      match not_one (table s) b c with
      | Some e =>
        if is_above (table s) e then
          let (w, s) := invert FUEL e s in
          if (print_of (prints s) w <? print_of (prints s) e)%Z then
            let (i, s) := emit (OConst 1) s in
            let (d, s) := emit (OAdd i w) s in
            let (l, s) := emit (OApp Log d) s in
            let (m, s) := logs fuel e s in emit (OAdd m l) s
          else emit (OApp Log a) s
        else emit (OApp Log a) s
      | None => emit (OApp Log a) s
      end
    | _ => emit (OApp Log a) s
    end
  end.

Lemma gen_log_plain a s k s' :
  emit (OApp Log a) s = (k, s') -> gen s s' (fun v => 0 < v a) (fun v => v k = ln (v a)).
Proof. intros E. exact (gen_emit _ _ _ _ E). Qed.

Lemma not_one_ok s v b c e : table_ok s -> Sat v (written s) -> not_one (table s) b c = Some e -> v b + v c = 1 + v e.
Proof.
  assert (O : forall k, table_ok s -> Sat v (written s) -> is_one (table s) k = true -> v k = 1).
  { unfold is_one. intros k T S H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
    destruct o; try discriminate. rewrite (in_table s k _ v T S F). simpl. apply Qeq_true in H. rewrite H.
    apply RMicromega.Q2R_1. }
  unfold not_one. intros T S. destruct (is_one (table s) b) eqn:B.
  - intros H; inversion H; subst. now rewrite (O b T S B).
  - destruct (is_one (table s) c) eqn:C; [|discriminate]. intros H; inversion H; subst. rewrite (O c T S C). ring.
Qed.

Lemma gen_logs fuel : forall a s k s', logs fuel a s = (k, s') ->
  gen s s' (fun v => 0 < v a) (fun v => v k = ln (v a)).
Proof.
  induction fuel as [|fuel IH]; intros a s k s'; cbn [logs]; [apply gen_log_plain|].
  destruct (M.find a (table s)) as [o|] eqn:F; [|apply gen_log_plain].
  assert (L : forall v s', (exists e, written s' = e ++ written s) -> table_ok s -> Sat v (written s') -> v a = evalop v o).
  { intros v s1 X T S. apply (in_table s a o v T); [exact (Sat_ext v _ _ X S) | exact F]. }
  assert (P : forall v s' j, (exists e, written s' = e ++ written s) -> table_ok s -> Sat v (written s') ->
    is_above (table s) j = true -> 0 < v j).
  { intros v s1 j X T S. apply is_above_ok; [exact T | exact (Sat_ext v _ _ X S)]. }
  destruct o as [q| |b c|b c|b|b n|f d|g b c]; try apply gen_log_plain.
  - destruct (not_one (table s) b c) as [e|] eqn:Q; [|apply gen_log_plain].
    destruct (is_above (table s) e) eqn:A; [|apply gen_log_plain].
    step_gen. destruct (_ <? _)%Z.
    + repeat step_gen. intros E4.
      assert (G := gen_then _ _ _ _ _ _ _ (gen_invert _ _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
        (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_log_plain _ _ _ _ E2)
        (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E3) (gen_emit _ _ _ _ E4)))))).
      assert (X := gen_ext _ _ _ _ G). destruct G as [G1 G2 G3 G4]. split; auto.
      * intros T v S. destruct (G3 T v S) as (C1 & C2 & C3 & C4 & C5 & C6). assert (Pe := P v s' e X T S A).
        rewrite C6. cbn [evalop]. rewrite C5, C4, C3. cbn [evalop]. rewrite C2, C1, (L v s' X T S). cbn [evalop].
        rewrite (not_one_ok s v b c e T (Sat_ext v _ _ X S) Q), RMicromega.Q2R_1.
        rewrite <- ln_mult; [f_equal; field; lra | exact Pe|]. generalize (Rinv_0_lt_compat _ Pe). lra.
      * intros T v S D N. assert (Pe := P v s' e X T S A). apply G4; auto.
        split; [lra|]. intros C1. split; [exact I|]. intros C2. split; [exact I|]. cbn [evalop] in *. intros C3.
        split; [|intros _; split; [exact Pe | intros; exact I]]. rewrite C3, C2, C1, RMicromega.Q2R_1.
        generalize (Rinv_0_lt_compat _ Pe). lra.
    + intros E0.
      assert (G := gen_then _ _ _ _ _ _ _ (gen_invert _ _ _ _ _ E) (gen_log_plain _ _ _ _ E0)).
      assert (X := gen_ext _ _ _ _ G). destruct G as [G1 G2 G3 G4]. split; auto.
      * intros T v S. now destruct (G3 T v S).
      * intros T v S D N. assert (Pe := P v s' e X T S A). apply G4; auto. split; [lra | now intros].
  - destruct (is_above (table s) b && is_above (table s) c) eqn:A; [|apply gen_log_plain].
    apply andb_prop in A. destruct A as [A B]. repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E0) (gen_emit _ _ _ _ E3))).
    assert (X := gen_ext _ _ _ _ G). destruct G as [G1 G2 G3 G4]. split; auto.
    + intros T v S. destruct (G3 T v S) as (C1 & C2 & C3). rewrite C3. cbn [evalop].
      rewrite C2, C1, (L v s' X T S). cbn [evalop]. symmetry. apply ln_mult; now apply (P v s').
    + intros T v S D N. assert (Pb := P v s' b X T S A). assert (Pc := P v s' c X T S B).
      apply G4; auto. cbn. tauto.
  - destruct (is_above (table s) b && Nat.leb n 40) eqn:A; [|apply gen_log_plain].
    apply andb_prop in A. destruct A as [A _]. repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0) (gen_emit _ _ _ _ E3))).
    assert (X := gen_ext _ _ _ _ G). destruct G as [G1 G2 G3 G4]. split; auto.
    + intros T v S. destruct (G3 T v S) as (C1 & C2 & C3). rewrite C3. cbn [evalop].
      rewrite C2, C1, (L v s' X T S). cbn [evalop]. rewrite ln_pow by now apply (P v s').
      rewrite INR_IZR_INZ. f_equal. unfold Q2R, inject_Z. simpl. field.
    + intros T v S D N. assert (Pb := P v s' b X T S A). apply G4; auto. cbn. tauto.
  - destruct f; try apply gen_log_plain.
    + step_gen. intros E1.
      assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E) (gen_negate _ _ _ _ E1)).
      assert (X := gen_ext _ _ _ _ G). destruct G as [G1 G2 G3 G4]. split; auto.
      * intros T v S. destruct (G3 T v S) as (C1 & C2). rewrite C2, C1, (L v s' X T S). cbn [evalop value1].
        symmetry. apply ln_inv.
      * intros T v S D N. rewrite (L v s' X T S) in N. cbn [evalop value1] in N. apply G4; auto.
        split; [|intros; exact I]. rewrite <- Rinv_inv. now apply Rinv_0_lt_compat.
    + intros E; inversion E; subst. apply gen_here. intros T v S.
      rewrite (L v s' (ex_intro _ [] eq_refl) T S). cbn [evalop value1]. symmetry. apply ln_exp.
Qed.

Opaque logs.

Definition DEPTH : nat := 12.

(** ln(1 + exp(a)) and ln(exp(a) + exp(b)). *)
Definition soft (a : positive) (s : state) : positive * state :=
  let (i, s) := emit (OConst 1) s in
  let (e, s) := exponential a s in
  let (d, s) := emit (OAdd i e) s in logs DEPTH d s.

Lemma gen_soft a s k s' : soft a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = softplus (v a)).
Proof.
  unfold soft. repeat step_gen. intros E2.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E0)
    (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_logs _ _ _ _ _ E2)))).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op].
  - intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. split; [exact I|]. intros C3.
    rewrite C3, C2, C1, RMicromega.Q2R_1. generalize (exp_pos (v a)). lra.
  - intros T v S (C1 & C2 & C3 & C4). now rewrite C4, C3, C2, C1, RMicromega.Q2R_1.
Qed.

Definition soft_sum (a b : positive) (s : state) : positive * state :=
  let (e, s) := exponential a s in
  let (f, s) := exponential b s in
  let (d, s) := emit (OAdd e f) s in logs DEPTH d s.

Lemma gen_soft_sum a b s k s' :
  soft_sum a b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = logaddexp (v a) (v b)).
Proof.
  unfold soft_sum. repeat step_gen. intros E2.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E0)
    (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_logs _ _ _ _ _ E2)))).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op].
  - intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. split; [exact I|]. intros C3.
    rewrite C3, C2, C1. generalize (exp_pos (v a)) (exp_pos (v b)). lra.
  - intros T v S (C1 & C2 & C3 & C4). now rewrite C4, C3, C2, C1.
Qed.

(** a + q. *)
Definition plus_const (q : Q) (a : positive) (s : state) : positive * state :=
  let (i, s) := emit (OConst q) s in emit (OAdd i a) s.

Lemma gen_plus_const q a s k s' :
  plus_const q a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = Q2R q + v a).
Proof.
  unfold plus_const. step_gen. intros E1.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E) (gen_emit _ _ _ _ E1)).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op]; [tauto|].
  intros T v S (C1 & C2). now rewrite C2, C1.
Qed.

(** exp(b l), where l is the logarithm of a basis: a product for a sum b. *)
Fixpoint powered (fuel : nat) (b l : positive) (s : state) : positive * state :=
  match fuel with
  | O => let (m, s) := emit (OMul b l) s in signed_exp m s
  | S fuel =>
    match M.find b (table s) with
    | Some (OAdd c d) =>
      let (i, s) := powered fuel c l s in let (j, s) := powered fuel d l s in emit (OMul i j) s
    | Some (OOpp c) => let (i, s) := powered fuel c l s in invert FUEL i s
    | _ =>
      match natural (table s) b with
      | Some n => let (i, s) := exponential l s in emit (OPow i n) s
      | None => let (m, s) := emit (OMul b l) s in signed_exp m s
      end
    end
  end.

Lemma gen_powered fuel : forall b l s k s', powered fuel b l s = (k, s') ->
  gen s s' (fun _ => True) (fun v => v k = exp (v b * v l)).
Proof.
  assert (A : forall b l s k s', (let (m, s) := emit (OMul b l) s in signed_exp m s) = (k, s') ->
    gen s s' (fun _ => True) (fun v => v k = exp (v b * v l))).
  { intros b l s k s'. step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E) (gen_signed_exp _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op]; [tauto|]. intros T v S (C1 & C2). now rewrite C2, C1. }
  assert (B : forall b l s k s',
    match natural (table s) b with
    | Some n => let (i, s) := exponential l s in emit (OPow i n) s
    | None => let (m, s) := emit (OMul b l) s in signed_exp m s
    end = (k, s') -> gen s s' (fun _ => True) (fun v => v k = exp (v b * v l))).
  { intros b l s k s'. destruct (natural (table s) b) as [n|] eqn:Q; [|apply A]. step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E) (gen_emit _ _ _ _ E1)).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op]; [tauto|].
    intros T v S (C1 & C2). rewrite C2, C1, (natural_ok s v b n T (Sat_ext v _ _ X S) Q). now rewrite exp_multiple. }
  induction fuel as [|fuel IH]; intros b l s k s'; cbn [powered]; [apply A|].
  destruct (M.find b (table s)) as [o|] eqn:F; [|apply B].
  destruct o as [q| |c d|c d|c|c n|f d|g c d]; try apply B.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ _ E0) (gen_emit _ _ _ _ E3))).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
    intros T v S (C1 & C2 & C3). rewrite C3. cbn [evalop].
    rewrite C2, C1, (in_table s b _ v T (Sat_ext v _ _ X S) F). cbn [evalop].
    now rewrite Rmult_plus_distr_r, exp_plus.
  - step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IH _ _ _ _ _ E) (gen_invert _ _ _ _ _ E3)).
    assert (X := gen_ext _ _ _ _ G). apply (gen_weaken _ _ _ _ _ _ G).
    + intros v _. split; [exact I|]. intros C1. rewrite C1. apply Rgt_not_eq, exp_pos.
    + intros T v S (C1 & C2). rewrite C2, C1, (in_table s b _ v T (Sat_ext v _ _ X S) F). cbn [evalop].
      now rewrite Ropp_mult_distr_l_reverse, exp_Ropp.
Qed.

Opaque powered.

(** The value of an expression of constants. *)
Fixpoint constant_of (t : M.t op) (fuel : nat) (k : positive) : option Q :=
  match fuel, M.find k t with
  | _, Some (OConst q) => Some q
  | S fuel, Some (OMul a b) =>
    match constant_of t fuel a, constant_of t fuel b with Some p, Some q => Some (p * q)%Q | _, _ => None end
  | _, _ => None
  end.

Lemma constant_of_ok t v : sound t v -> forall fuel k q, constant_of t fuel k = Some q -> v k = Q2R q.
Proof.
  intros T. induction fuel as [|fuel IH]; intros k q; cbn [constant_of];
    (destruct (M.find k t) as [o|] eqn:F; [|discriminate]; apply T in F; destruct o; try discriminate).
  - intros H; inversion H; now subst.
  - intros H; inversion H; now subst.
  - destruct (constant_of t fuel a) as [p|] eqn:A; [|discriminate].
    destruct (constant_of t fuel b) as [r|] eqn:B; [|discriminate]. intros H; inversion H; subst.
    rewrite F. cbn [evalop]. now rewrite (IH _ _ A), (IH _ _ B), Q2R_mult.
Qed.

(** x^y: roots are kept, other powers are exponentials of y ln x. *)
Definition power (a b : positive) (s : state) : positive * state :=
  match constant_of (table s) 4 b with
  | Some _ => emit (OApp2 Power a b) s
  | None => let (l, s) := logs DEPTH a s in powered DEPTH b l s
  end.

Lemma gen_power a b s k s' :
  power a b s = (k, s') -> gen s s' (fun v => 0 < v a) (fun v => v k = Rpower (v a) (v b)).
Proof.
  unfold power. destruct (constant_of _ _ _).
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); auto. intros v H. cbn [domain_op].
    unfold domain2. cbv [needs2]. constructor; [exact H | constructor].
  - step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_logs _ _ _ _ _ E) (gen_powered _ _ _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G); [tauto|]. intros T v S (C1 & C2). now rewrite C2, C1.
Qed.

(** ** Functions *)

Definition apply1 (f : fn) (a : positive) (s : state) : positive * state :=
  match f with
  | Inv => invert FUEL a s
  | Exp => exponential a s
  | Sigmoid => logistic a s
  | Tanh => hyperbolic a s
  | Sech => with_tanh a s
  | Log => if deep s then logs DEPTH a s else emit (OApp Log a) s
  | Softplus => if deep s then soft a s else emit (OApp Softplus a) s
  | Log1p => if deep s then let (d, s) := plus_const 1 a s in logs DEPTH d s else emit (OApp Log1p a) s
  | Expm1 => if deep s then let (e, s) := exponential a s in plus_const (-1) e s else emit (OApp Expm1 a) s
  | Silu => if deep s then let (w, s) := logistic a s in emit (OMul a w) s else emit (OApp Silu a) s
  | _ => emit (OApp f a) s
  end.

Lemma gen_apply1 f a s k s' :
  apply1 f a s = (k, s') -> gen s s' (fun v => domain1 f (v a)) (fun v => v k = value1 f (v a)).
Proof.
  assert (W : gen s s' (fun _ => True) (fun v => v k = value1 f (v a)) ->
    gen s s' (fun v => domain1 f (v a)) (fun v => v k = value1 f (v a))).
  { intros G. exact (gen_weaken _ _ _ _ _ _ G (fun _ _ => I) (fun _ _ _ c => c)). }
  intros E. destruct f; cbn [apply1] in E; try exact (gen_emit _ _ _ _ E).
  - exact (gen_invert _ _ _ _ _ E).
  - apply W, (gen_exponential _ _ _ _ E).
  - destruct (deep s); [exact (gen_logs _ _ _ _ _ E) | exact (gen_emit _ _ _ _ E)].
  - apply W, (gen_hyperbolic _ _ _ _ E).
  - apply W, (gen_with_tanh _ _ _ _ E).
  - apply W, (gen_logistic _ _ _ _ E).
  - destruct (deep s); [apply W, (gen_soft _ _ _ _ E) | exact (gen_emit _ _ _ _ E)].
  - destruct (deep s); [|exact (gen_emit _ _ _ _ E)]. revert E. step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_logistic _ _ _ _ E) (gen_emit _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|]. intros T v S (C1 & C2). rewrite C2. cbn [evalop]. now rewrite C1.
  - destruct (deep s); [|exact (gen_emit _ _ _ _ E)]. revert E. step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_plus_const _ _ _ _ _ E) (gen_logs _ _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G).
    + intros v H. split; [exact I|]. intros C1. rewrite C1, RMicromega.Q2R_1. cbn [domain1] in H. lra.
    + intros T v S (C1 & C2). now rewrite C2, C1, RMicromega.Q2R_1.
  - destruct (deep s); [|exact (gen_emit _ _ _ _ E)]. revert E. step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E) (gen_plus_const _ _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|]. intros T v S (C1 & C2). rewrite C2, C1. cbn [value1].
    unfold expm1, Q2R. simpl. field.
Qed.

Definition apply2 (g : fn2) (a b : positive) (s : state) : positive * state :=
  if deep s then
    match g with
    | Power => power a b s
    | Logaddexp => soft_sum a b s
    | Xlogy => let (l, s) := logs DEPTH b s in emit (OMul a l) s
    | _ => emit (OApp2 g a b) s
    end
  else emit (OApp2 g a b) s.

Lemma gen_apply2 g a b s k s' :
  apply2 g a b s = (k, s') -> gen s s' (fun v => domain2 g (v a) (v b)) (fun v => v k = value2 g (v a) (v b)).
Proof.
  unfold apply2. destruct (deep s); [|intros E; exact (gen_emit _ _ _ _ E)].
  assert (P : forall x y z : R, domain2 Power x y -> 0 < x).
  { intros x y z H. unfold domain2 in H. cbv [needs2] in H. now inversion H. }
  assert (Q : forall x y z : R, domain2 Xlogy x y -> 0 < y).
  { intros x y z H. unfold domain2 in H. cbv [needs2] in H. now inversion H. }
  destruct g; try (intros E; exact (gen_emit _ _ _ _ E)).
  - intros E. apply gen_power in E. apply (gen_weaken _ _ _ _ _ _ E); auto. intros v H. now apply (P (v a) (v b) 0).
  - intros E. apply gen_soft_sum in E. apply (gen_weaken _ _ _ _ _ _ E); auto.
  - step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_logs _ _ _ _ _ E) (gen_emit _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G).
    + intros v H. split; [now apply (Q (v a) (v b) 0) | intros; exact I].
    + intros T v S (C1 & C2). rewrite C2. cbn [evalop]. now rewrite C1.
Qed.
