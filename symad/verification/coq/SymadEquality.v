(** Equal values in one program: local identities in a ring, found and proved by computation.

    Values that seem equal, by a fingerprint modulo a prime, are compared as polynomials in values before
    them. The fingerprint is never trusted: [classes] relates only values whose polynomials have the same
    normal form, and [classes_ok] proves that these are equal. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals RMicromega Ring PArith FMapPositive.
From Coq.micromega Require Import EnvRing.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadStatements SymadElementary SymadPrograms.
Import ListNotations.
Open Scope R_scope.

(** ** Polynomials with rational coefficients *)

Definition qadd (a b : Q) : Q := Qred (a + b).
Definition qmul (a b : Q) : Q := Qred (a * b).
Definition qsub (a b : Q) : Q := Qred (a - b).

Definition poly := PExpr Q.
Definition normal : poly -> Pol Q := norm_aux 0%Q 1%Q qadd qmul qsub Qopp Qeq_bool.
Definition same_normal : Pol Q -> Pol Q -> bool := Peq Qeq_bool.
Definition peval (v : valuation) : poly -> R :=
  PEeval Rplus Rmult Rminus Ropp Q2R N.to_nat pow v.

Lemma Q2R_red q : Q2R (Qred q) = Q2R q.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma rationals : ring_morph 0 1 Rplus Rmult Rminus Ropp eq 0%Q 1%Q qadd qmul qsub Qopp Qeq_bool Q2R.
Proof.
  constructor; intros; unfold qadd, qmul, qsub; rewrite ?Q2R_red.
  - apply Q2R_0.
  - apply Q2R_1.
  - apply Q2R_plus.
  - apply Q2R_minus.
  - apply Q2R_mult.
  - apply Q2R_opp.
  - now apply Qeq_true.
Qed.

Lemma same_normal_ok (a b : Pol Q) v :
  same_normal a b = true -> Pphi Rplus Rmult Q2R v a = Pphi Rplus Rmult Q2R v b.
Proof. intros H. apply (Peq_ok Rset (Eq_ext Rplus Rmult Ropp) rationals _ _ H). Qed.

(** ** Values as polynomials *)

Definition rep (classes : M.t positive) (k : positive) : positive :=
  match M.find k classes with Some r => r | None => k end.

Definition is_const (t : M.t op) (k : positive) : bool :=
  match M.find k t with Some (OConst _) => true | _ => false end.

(** A value as a polynomial. [level] bounds how often the expansion goes from a sum into a product or from a
    product into a sum; [inside] is the operation around the value: none, a sum, a product. *)
Inductive place := Nowhere | InSum | InProduct.

Fixpoint expand (t : M.t op) (classes : M.t positive) (fuel level : nat) (inside : place) (k : positive)
    : poly :=
  let k := rep classes k in
  match fuel with
  | O => PEX k
  | S fuel =>
    let sum f :=
      match inside, level with
      | InSum, _ => f level
      | _, S l => f l
      | _, O => PEX k
      end in
    let product f :=
      match inside, level with
      | InProduct, _ => f level
      | _, S l => f l
      | _, O => PEX k
      end in
    match M.find k t with
    | Some (OConst q) => PEc q
    | Some (OAdd a b) =>
      sum (fun l => PEadd (expand t classes fuel l InSum a) (expand t classes fuel l InSum b))
    | Some (OOpp a) => PEopp (expand t classes fuel level inside a)
    | Some (OMul a b) =>
      if is_const t (rep classes a) || is_const t (rep classes b)
      then PEmul (expand t classes fuel level inside a) (expand t classes fuel level inside b)
      else product (fun l => PEmul (expand t classes fuel l InProduct a) (expand t classes fuel l InProduct b))
    | Some (OPow a n) => product (fun l => PEpow (expand t classes fuel l InProduct a) (N.of_nat n))
    | _ => PEX k
    end
  end.

Definition respected (v : valuation) (classes : M.t positive) : Prop := forall k, v (rep classes k) = v k.

Lemma expand_ok t v classes : sound t v -> respected v classes ->
  forall fuel level inside k, peval v (expand t classes fuel level inside k) = v k.
Proof.
  intros T C. induction fuel as [|fuel IH]; intros level inside k; [apply C|].
  cbn [expand]. rewrite <- (C k). set (j := rep classes k).
  destruct (M.find j t) as [o|] eqn:F; [|reflexivity]. apply T in F.
  destruct o as [q| |a b|a b|a|a n|f a|g a b]; try reflexivity; rewrite F; cbn [evalop].
  - reflexivity.
  - destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH; try reflexivity; exact F.
  - destruct (is_const t (rep classes a) || is_const t (rep classes b)).
    + unfold peval; cbn [PEeval]; fold (peval v). now rewrite !IH.
    + destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH; try reflexivity;
        exact F.
  - unfold peval; cbn [PEeval]; fold (peval v). now rewrite IH.
  - destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH, ?Nnat.Nat2N.id;
      try reflexivity; exact F.
Qed.

(** ** Relations

    sech² = 1 − tanh², and e w = 1 − w for w = 1/(1 + e) with an exponential e. They replace monomials in
    normal forms. *)

Definition rule := (Mon * Pol Q)%type.

Definition meval (v : valuation) : Mon -> R := Mphi 1 Rmult v.
Definition poleval (v : valuation) : Pol Q -> R := Pphi Rplus Rmult Q2R v.

Lemma normal_ok v p : peval v p = poleval v (normal p).
Proof.
  apply (norm_aux_spec Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory)
    rationals R_power_theory v p).
Qed.

Definition mono_at (k : positive) (m : Mon) : Mon := match k with xH => m | _ => zmon (Pos.pred k) m end.

(** The monomials x_k^n and x_j x_k with j < k. *)
Definition power_of (k n : positive) : Mon := mono_at k (vmon n mon0).
Definition product_of (j k : positive) : Mon := mono_at j (vmon 1 (mono_at (k - j) (vmon 1 mon0))).

Lemma mono_at_ok (v : valuation) k m : meval v (mono_at k m) = meval (fun j => v (Pos.pred (j + k))) m.
Proof.
  unfold meval, mono_at. destruct k as [k|k|]; simpl; unfold Env.jump; apply Mphi_morph; intros j; f_equal; lia.
Qed.

Lemma pow_pos_sum x i j : pow_pos Rmult x (i + j) = pow_pos Rmult x i * pow_pos Rmult x j.
Proof.
  rewrite Pos.add_comm.
  apply (pow_pos_add Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory)).
Qed.

Lemma pow_pos_pow x n : pow_pos Rmult x n = x ^ Pos.to_nat n.
Proof.
  induction n as [|n IH] using Pos.peano_ind; [simpl; ring|].
  rewrite <- Pos.add_1_r, pow_pos_sum, Pos.add_1_r, Pos2Nat.inj_succ, IH. simpl. ring.
Qed.

Lemma power_of_ok v k n : meval v (power_of k n) = v k ^ Pos.to_nat n.
Proof.
  unfold power_of. rewrite mono_at_ok. unfold meval. simpl. unfold Env.hd, Env.nth.
  replace (Pos.pred (1 + k)) with k by lia. rewrite pow_pos_pow. ring.
Qed.

Lemma product_of_ok v j k : (j < k)%positive -> meval v (product_of j k) = v j * v k.
Proof.
  intros H. unfold product_of. rewrite mono_at_ok. unfold meval at 1. cbn [Mphi].
  fold (meval (Env.tail (fun i => v (Pos.pred (i + j)))) (mono_at (k - j) (vmon 1 mon0))).
  rewrite mono_at_ok. unfold meval; simpl. unfold Env.hd, Env.nth, Env.tail, Env.jump.
  replace (Pos.pred (1 + j)) with j by lia.
  replace (Pos.pred (Pos.pred (1 + (k - j)) + 1 + j)) with k by lia. ring.
Qed.

(** The exponential e of w = 1/(1 + e), or of w = 1/e. *)
Inductive inverse := Logistic (e : positive) | Plain (e : positive).

Definition is_exp (t : M.t op) (e : positive) : bool :=
  match M.find e t with Some (OApp Exp _) => true | _ => false end.

Definition inverse_of (t : M.t op) (w : positive) : option inverse :=
  match M.find w t with
  | Some (OApp Inv d) =>
    match M.find d t with
    | Some (OApp Exp _) => Some (Plain d)
    | Some (OAdd i e) =>
      if is_one t i && is_exp t e then Some (Logistic e) else if is_one t e && is_exp t i then Some (Logistic i) else None
    | _ => None
    end
  | _ => None
  end.

Definition product_rule (j k : positive) (right : poly) : list rule :=
  if Pos.ltb j k then [(product_of j k, normal right)] else if Pos.ltb k j then [(product_of k j, normal right)] else [].

Definition rules_of (t : M.t op) (tanhs classes : M.t positive) (k : positive) : list rule :=
  match M.find k t with
  | Some (OApp Sech b) =>
    match M.find b tanhs with
    | Some h => [(power_of k 2, normal (PEsub (PEc 1%Q) (PEpow (expand t classes 20 5 Nowhere h) 2)))]
    | None => []
    end
  | Some (OApp Inv _) =>
    match inverse_of t k with
    | Some (Logistic e) => product_rule (rep classes e) k (PEsub (PEc 1%Q) (PEX k))
    | Some (Plain e) => product_rule (rep classes e) k (PEc 1%Q)
    | None => []
    end
  | _ => []
  end.

Definition tanhs_right (v : valuation) (tanhs : M.t positive) : Prop :=
  forall b h, M.find b tanhs = Some h -> v h = tanh (v b).

Definition right_rule (v : valuation) (r : rule) : Prop := meval v (fst r) = poleval v (snd r).

Lemma is_one_ok t v k : sound t v -> is_one t k = true -> v k = 1.
Proof.
  unfold is_one. intros T H. destruct (M.find k t) as [o|] eqn:F; [|discriminate]. apply T in F.
  destruct o; try discriminate. rewrite F. simpl. apply Qeq_true in H. rewrite H. apply RMicromega.Q2R_1.
Qed.

Lemma is_exp_ok t v k : sound t v -> is_exp t k = true -> exists x, v k = exp x.
Proof.
  unfold is_exp. intros T H. destruct (M.find k t) as [o|] eqn:F; [|discriminate]. apply T in F.
  destruct o as [| | | | | |f a|]; try discriminate. destruct f; try discriminate. now exists (v a).
Qed.

Lemma inverse_of_ok t v w i : sound t v -> inverse_of t w = Some i ->
  match i with Logistic e => v e * v w = 1 - v w | Plain e => v e * v w = 1 end.
Proof.
  unfold inverse_of. intros T H.
  destruct (M.find w t) as [o|] eqn:W; [|discriminate]. destruct o as [| | | | | |f d|]; try discriminate.
  destruct f; try discriminate. apply T in W. simpl in W.
  destruct (M.find d t) as [o|] eqn:D; [|discriminate]. assert (D' := D). apply T in D.
  destruct o as [| |i' e| | | |f x|]; try discriminate.
  - simpl in D. destruct (is_one t i' && is_exp t e) eqn:A.
    + apply andb_prop in A. destruct A as [A B]. apply (is_one_ok t v) in A; [|exact T].
      apply (is_exp_ok t v) in B; [|exact T]. destruct B as [x B]. inversion H; subst.
      rewrite W, D, A, B. apply logistic_relation.
    + destruct (is_one t e && is_exp t i') eqn:C; [|discriminate]. apply andb_prop in C. destruct C as [C B].
      apply (is_one_ok t v) in C; [|exact T]. apply (is_exp_ok t v) in B; [|exact T]. destruct B as [x B].
      inversion H; subst. rewrite W, D, C, B, Rplus_comm. apply logistic_relation.
  - destruct f; try discriminate. inversion H; subst. simpl in D. rewrite W, D. apply Rinv_r, Rgt_not_eq, exp_pos.
Qed.

Lemma product_rule_ok v j k right : v j * v k = peval v right -> List.Forall (right_rule v) (product_rule j k right).
Proof.
  unfold product_rule, right_rule. intros H.
  destruct (Pos.ltb_spec j k); [|destruct (Pos.ltb_spec k j); [|constructor]];
    (constructor; [|constructor]); cbn [fst snd]; rewrite product_of_ok, <- normal_ok by assumption.
  - exact H.
  - now rewrite Rmult_comm.
Qed.

Lemma one_minus_square v p : peval v (PEsub (PEc 1%Q) (PEpow p 2)) = Q2R 1 - peval v p ^ 2.
Proof. reflexivity. Qed.

Lemma rules_of_ok t v tanhs classes k : sound t v -> tanhs_right v tanhs -> respected v classes ->
  List.Forall (right_rule v) (rules_of t tanhs classes k).
Proof.
  intros T H C. unfold rules_of. destruct (M.find k t) as [o|] eqn:F; [|constructor].
  destruct o as [| | | | | |f b|]; try constructor. destruct f; try constructor.
  - destruct (inverse_of t k) as [[e|e]|] eqn:L; [| |constructor]; apply (inverse_of_ok t v) in L; auto;
      apply product_rule_ok; rewrite (C e), L; unfold peval; simpl; unfold Env.nth; now rewrite RMicromega.Q2R_1.
  - destruct (M.find b tanhs) as [h|] eqn:G; [|constructor]. apply T in F. simpl in F. apply H in G.
    constructor; [|constructor]. unfold right_rule; cbn [fst snd]. rewrite power_of_ok, <- normal_ok.
    rewrite one_minus_square, (expand_ok t v classes T C).
    rewrite F, G, sech_square, RMicromega.Q2R_1. reflexivity.
Qed.

Fixpoint variables (p : poly) : list positive :=
  match p with
  | PEc _ => []
  | PEX k => [k]
  | PEadd a b | PEsub a b | PEmul a b => variables a ++ variables b
  | PEopp a | PEpow a _ => variables a
  end.

(** e (1/e) = 1 is applied first, so that e² (1/e)² w becomes w, and not (1/e)(1 − w). *)
Definition plain (r : rule) : bool := match snd r with Pc _ => true | _ => false end.

Definition rules_for (t : M.t op) (tanhs classes : M.t positive) (p : poly) : list rule :=
  let rules := flat_map (rules_of t tanhs classes) (variables p) in
  filter plain rules ++ filter (fun r => negb (plain r)) rules.

Lemma rules_for_ok t v tanhs classes p : sound t v -> tanhs_right v tanhs -> respected v classes ->
  List.Forall (right_rule v) (rules_for t tanhs classes p).
Proof.
  intros T H C. unfold rules_for.
  assert (A : List.Forall (right_rule v) (flat_map (rules_of t tanhs classes) (variables p))).
  { induction (variables p) as [|k l IH]; [constructor|]. simpl.
    apply List.Forall_app. split; [now apply rules_of_ok | exact IH]. }
  rewrite List.Forall_forall in A. apply List.Forall_app.
  split; apply List.Forall_forall; intros r I; apply filter_In in I; now apply A.
Qed.

(** P as Q + M R, where no monomial of Q is a multiple of M; the factorisation of EnvRing stops where
    variables lie between those of M. *)
Definition skip (j : positive) (m : Mon) : Mon :=
  match m with mon0 => mon0 | zmon i m => zmon (j + i) m | _ => zmon j m end.

Definition skip_pred (j : positive) (m : Mon) : Mon := match j with xH => m | _ => skip (Pos.pred j) m end.

Fixpoint factor (p : Pol Q) (m : Mon) : Pol Q * Pol Q :=
  match p, m with
  | _, mon0 => (Pc 0%Q, p)
  | Pc _, _ => (p, Pc 0%Q)
  | Pinj j p1, zmon i m1 =>
    match (j ?= i)%positive with
    | Eq => let (q, r) := factor p1 m1 in (mkPinj j q, mkPinj j r)
    | Lt => let (q, r) := factor p1 (zmon (i - j) m1) in (mkPinj j q, mkPinj j r)
    | Gt => (p, Pc 0%Q)
    end
  | Pinj _ _, vmon _ _ => (p, Pc 0%Q)
  | PX p1 i q1, zmon j m1 =>
    let (q, r) := factor p1 m in
    let (q', r') := factor q1 (skip_pred j m1) in
    (mkPX 0%Q Qeq_bool q i q', mkPX 0%Q Qeq_bool r i r')
  | PX p1 i q1, vmon j m1 =>
    match (i ?= j)%positive with
    | Eq => let (q, r) := factor p1 (skip 1 m1) in (mkPX 0%Q Qeq_bool q i q1, r)
    | Lt => let (q, r) := factor p1 (vmon (j - i) m1) in (mkPX 0%Q Qeq_bool q i q1, r)
    | Gt =>
      let (q, r) := factor p1 (skip 1 m1) in
      (mkPX 0%Q Qeq_bool q i q1, mkPX 0%Q Qeq_bool r (i - j) (Pc 0%Q))
    end
  end.

Lemma zero_ok v : poleval v (Pc 0%Q) = 0.
Proof. apply RMicromega.Q2R_0. Qed.

Lemma pinj_ok v j p : poleval v (mkPinj j p) = poleval (Env.jump j v) p.
Proof.
  apply (@mkPinj_ok R Rplus Rmult eq Rset).
Qed.

Lemma px_ok v p i q :
  poleval v (mkPX 0%Q Qeq_bool p i q) = poleval v p * pow_pos Rmult (Env.hd v) i + poleval (Env.tail v) q.
Proof.
  apply (mkPX_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals).
Qed.

Lemma jump_add (v : valuation) i j m : meval (Env.jump i (Env.jump j v)) m = meval (Env.jump (j + i) v) m.
Proof. apply Mphi_morph. intros x. unfold Env.jump. f_equal. lia. Qed.

Lemma skip_ok v j m : meval v (skip j m) = meval (Env.jump j v) m.
Proof. destruct m; try reflexivity. simpl skip. symmetry. apply (jump_add v p j). Qed.

Lemma skip_pred_ok v j m : meval (Env.tail v) (skip_pred j m) = meval (Env.jump j v) m.
Proof.
  unfold skip_pred, Env.tail.
  destruct j as [j|j|]; [| |reflexivity]; rewrite skip_ok, jump_add; f_equal; f_equal; lia.
Qed.

Lemma factor_ok p : forall v m, poleval v p = poleval v (fst (factor p m)) + meval v m * poleval v (snd (factor p m)).
Proof.
  induction p as [c|j p IH|p1 IH1 i q1 IH2]; intros v m.
  - destruct m; cbn [factor fst snd]; rewrite zero_ok; unfold meval; simpl; ring.
  - destruct m as [|k m|k m]; cbn [factor].
    + cbn [fst snd]. rewrite zero_ok. unfold meval; simpl. ring.
    + destruct (Pos.compare_spec j k) as [->|H|H].
      * specialize (IH (Env.jump k v) m). destruct (factor p m) as [q r]. cbn [fst snd] in *.
        rewrite !pinj_ok. exact IH.
      * specialize (IH (Env.jump j v) (zmon (k - j) m)). destruct (factor p (zmon (k - j) m)) as [q r].
        cbn [fst snd] in *. rewrite !pinj_ok. change (poleval v (Pinj j p)) with (poleval (Env.jump j v) p). rewrite IH.
        do 2 f_equal. change (meval (Env.jump (k - j) (Env.jump j v)) m = meval (Env.jump k v) m).
        rewrite jump_add. f_equal. f_equal. lia.
      * cbn [fst snd]. rewrite zero_ok. ring.
    + cbn [fst snd]. rewrite zero_ok. ring.
  - change (poleval v (PX p1 i q1)) with (poleval v p1 * pow_pos Rmult (Env.hd v) i + poleval (Env.tail v) q1).
    destruct m as [|k m|k m]; cbn [factor].
    + cbn [fst snd]. rewrite zero_ok. unfold meval; simpl.
      change (poleval v (PX p1 i q1)) with (poleval v p1 * pow_pos Rmult (Env.hd v) i + poleval (Env.tail v) q1). ring.
    + specialize (IH1 v (zmon k m)). specialize (IH2 (Env.tail v) (skip_pred k m)).
      destruct (factor p1 (zmon k m)) as [q r]. destruct (factor q1 (skip_pred k m)) as [q' r'].
      cbn [fst snd] in *. rewrite !px_ok, IH1, IH2, skip_pred_ok.
      change (meval v (zmon k m)) with (meval (Env.jump k v) m). ring.
    + change (meval v (vmon k m)) with (meval (Env.tail v) m * pow_pos Rmult (Env.hd v) k).
      destruct (Pos.compare_spec i k) as [->|H|H].
      * specialize (IH1 v (skip 1 m)). destruct (factor p1 (skip 1 m)) as [q r]. cbn [fst snd] in *.
        rewrite px_ok, IH1, skip_ok. unfold Env.tail. ring.
      * specialize (IH1 v (vmon (k - i) m)). destruct (factor p1 (vmon (k - i) m)) as [q r]. cbn [fst snd] in *.
        rewrite px_ok, IH1.
        change (meval v (vmon (k - i) m)) with (meval (Env.tail v) m * pow_pos Rmult (Env.hd v) (k - i)).
        replace (pow_pos Rmult (Env.hd v) k) with (pow_pos Rmult (Env.hd v) (k - i) * pow_pos Rmult (Env.hd v) i)
          by (rewrite <- pow_pos_sum; f_equal; lia). ring.
      * specialize (IH1 v (skip 1 m)). destruct (factor p1 (skip 1 m)) as [q r]. cbn [fst snd] in *.
        rewrite !px_ok, IH1, skip_ok, zero_ok.
        replace (pow_pos Rmult (Env.hd v) i) with (pow_pos Rmult (Env.hd v) (i - k) * pow_pos Rmult (Env.hd v) k)
          by (rewrite <- pow_pos_sum; f_equal; lia). unfold Env.tail. ring.
Qed.

Definition is_zero (p : Pol Q) : bool := match p with Pc c => Qeq_bool c 0 | _ => false end.

Fixpoint replace_all (n : nat) (r : rule) (p : Pol Q) : Pol Q :=
  match n with
  | O => p
  | S n =>
    let (q, s) := factor p (fst r) in
    if is_zero s then p else replace_all n r (Padd 0%Q qadd Qeq_bool q (Pmul 0%Q 1%Q qadd qmul Qeq_bool (snd r) s))
  end.

Lemma replace_all_ok v r : right_rule v r -> forall n p, poleval v (replace_all n r p) = poleval v p.
Proof.
  intros H. induction n as [|n IH]; intros p; [reflexivity|]. cbn [replace_all].
  assert (E := factor_ok p v (fst r)). destruct (factor p (fst r)) as [q s]. cbn [fst snd] in E.
  destruct (is_zero s); [reflexivity|]. rewrite IH, E, H. unfold poleval.
  rewrite (Padd_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals).
  rewrite (Pmul_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals).
  reflexivity.
Qed.

Definition once (rules : list rule) (p : Pol Q) : Pol Q := fold_left (fun p r => replace_all 8 r p) rules p.

Definition reduce (rules : list rule) (p : Pol Q) : Pol Q := once rules (once rules (once rules p)).

Lemma once_ok v rules : List.Forall (right_rule v) rules -> forall p, poleval v (once rules p) = poleval v p.
Proof.
  unfold once. induction 1 as [|r l R _ IH]; intros p; [reflexivity|]. cbn [fold_left].
  rewrite IH. exact (replace_all_ok v r R 8 p).
Qed.

Lemma reduce_ok v rules p : List.Forall (right_rule v) rules -> poleval v (reduce rules p) = poleval v p.
Proof. intros H. unfold reduce. now rewrite !once_ok. Qed.

(** A bound on the number of terms of the normal form. *)
Fixpoint terms_of (p : poly) : N :=
  match p with
  | PEc _ | PEX _ => 1
  | PEadd a b | PEsub a b => terms_of a + terms_of b
  | PEmul a b => terms_of a * terms_of b
  | PEopp a => terms_of a
  | PEpow a n => N.pow (terms_of a) (N.min n 30)
  end%N.

Definition MOST_TERMS : N := 3000.
Definition CHAIN : nat := N.to_nat 3000.

Definition same_at (t : M.t op) (tanhs classes : M.t positive) (j k : positive) (level : nat) : bool :=
  let a := expand t classes CHAIN level Nowhere j in
  let b := expand t classes CHAIN level Nowhere k in
  if (terms_of a <=? MOST_TERMS)%N && (terms_of b <=? MOST_TERMS)%N
  then
    let c := normal a in
    let d := normal b in
    if same_normal c d then true
    else
      let rules := rules_for t tanhs classes (PEadd a b) in
      match rules with [] => false | _ => same_normal (reduce rules c) (reduce rules d) end
  else false.

(** ** Signs

    What the domain of the model says of its values, by the number of their statements: they are not 0, and
    positive where the flag is true. Other signs follow from the operations. *)

Definition facts_of (s : positive * op) : list (positive * bool) :=
  let (k, o) := s in
  match o with
  | OApp Sqrt a => [(k, true); (a, true)]
  | OApp Log a | OApp Log2 a | OApp Log10 a | OApp2 Power a _ | OApp2 Xlogy _ a => [(a, true)]
  | OApp Inv a | OApp Acot a | OApp Csch a | OApp Coth a | OApp Abs a | OApp Sign a | OApp Heaviside a => [(a, false)]
  | _ => []
  end.

Definition learn (facts : M.t bool) (f : positive * bool) : M.t bool :=
  match M.find (fst f) facts with Some true => facts | _ => M.add (fst f) (snd f) facts end.

Definition facts_in (c : code) : M.t bool :=
  fold_left (fun facts s => fold_left learn (facts_of s) facts) c (M.empty bool).

Lemma facts_of_ok v s : v (fst s) = evalop v (snd s) -> domain_op v (snd s) -> List.Forall (fact_right v) (facts_of s).
Proof.
  assert (P : forall k, 0 < v k -> fact_right v (k, true)) by (intros k H; split; [apply Rgt_not_eq, H | auto]).
  assert (N : forall k, v k <> 0 -> fact_right v (k, false)) by (intros k H; split; [exact H | discriminate]).
  destruct s as [k o]. cbn [fst snd facts_of]. intros S D.
  destruct o as [| | | | | |f a|g a b]; try constructor.
  - assert (A : f = Sqrt -> 0 < v k) by (intros ->; rewrite S; now apply sqrt_lt_R0).
    destruct f; cbn [domain_op domain1] in D; repeat apply List.Forall_cons; auto.
  - destruct g; cbn [domain_op] in D; unfold domain2 in D; cbv [needs2] in D; try constructor;
      inversion D as [|c r D1 D2]; unfold holds in D1; cbn in D1; auto.
Qed.

Lemma learn_ok v facts f : fact_right v f -> facts_right v facts -> facts_right v (learn facts f).
Proof.
  intros R H. unfold learn.
  assert (A : facts_right v (M.add (fst f) (snd f) facts)).
  { intros k b. destruct (Pos.eq_dec k (fst f)) as [->|N].
    - rewrite M.gss. intros E; inversion E; subst. now destruct f.
    - rewrite M.gso by assumption. apply H. }
  destruct (M.find (fst f) facts) as [[]|]; auto.
Qed.

Lemma facts_in_ok v c : Sat v c -> Dom v c -> facts_right v (facts_in c).
Proof.
  unfold facts_in. intros S D. assert (E : facts_right v (M.empty bool)) by (intros k b; now rewrite M.gempty).
  revert E. generalize (M.empty bool). revert D. induction S as [|s c S1 S IH]; intros D facts E; [exact E|].
  inversion D; subst. cbn [fold_left]. apply IH; [assumption|].
  assert (L := facts_of_ok v s S1 H1). revert facts E.
  induction L as [|f l R L IHL]; intros facts E; [exact E|]. cbn [fold_left]. now apply IHL, learn_ok.
Qed.

Definition is_nonzero (t : M.t op) (facts : M.t bool) (k : positive) : bool :=
  match M.find k facts with Some _ => true | None => above t facts 50 true k end.

(** Whether a value, its class, or what it is the opposite of, is not 0. *)
Definition nowhere_zero (t : M.t op) (facts : M.t bool) (classes : M.t positive) (k : positive) : bool :=
  is_nonzero t facts k ||| is_nonzero t facts (rep classes k)
  ||| match M.find k t with
      | Some (OOpp a) => is_nonzero t facts a ||| is_nonzero t facts (rep classes a)
      | _ => false
      end.

Lemma is_nonzero_ok t facts v k : sound t v -> facts_right v facts -> is_nonzero t facts k = true -> v k <> 0.
Proof.
  unfold is_nonzero. intros T H E. destruct (M.find k facts) as [b|] eqn:F.
  - apply (H k b F).
  - apply (above_ok t facts v T H) in E. now apply Rgt_not_eq.
Qed.

Lemma nowhere_zero_ok t facts classes v k : sound t v -> facts_right v facts -> respected v classes ->
  nowhere_zero t facts classes k = true -> v k <> 0.
Proof.
  unfold nowhere_zero. intros T H C E.
  assert (A : forall j, is_nonzero t facts j || is_nonzero t facts (rep classes j) = true -> v j <> 0).
  { intros j B. apply orb_prop in B. destruct B as [B|B]; apply (is_nonzero_ok t facts v _ T H) in B; [exact B|].
    now rewrite (C j) in B. }
  apply orb_prop in E. destruct E as [E|E]; [now apply A|].
  destruct (M.find k t) as [o|] eqn:F; [|discriminate]. destruct o; try discriminate. apply T in F.
  rewrite F. cbn [evalop]. now apply Ropp_neq_0_compat, A.
Qed.

(** ** Fractions

    A polynomial is compared with 0 after it has been multiplied by the values d whose inverses w it contains:
    d w = 1. Powers of roots and of sech are replaced: r^n = a, sech² = 1 − tanh². The last statements come first,
    so that inverses in d follow. *)

Definition pmul : Pol Q -> Pol Q -> Pol Q := Pmul 0%Q 1%Q qadd qmul Qeq_bool.
Definition padd : Pol Q -> Pol Q -> Pol Q := Padd 0%Q qadd Qeq_bool.

Fixpoint ppow (d : Pol Q) (n : nat) : Pol Q := match n with O => Pc 1%Q | S n => pmul d (ppow d n) end.

(** The number of terms, and a bound on that of p^n: the number of monomials of degree n. *)
Fixpoint size (p : Pol Q) : N :=
  match p with Pc c => if Qeq_bool c 0 then 0 else 1 | Pinj _ p => size p | PX p _ q => size p + size q end%N.

Fixpoint size_of_power (terms : N) (n : nat) : N :=
  match n with O => 1 | S m => (size_of_power terms m * (terms + N.of_nat m) / N.of_nat n)%N end%N.

Definition is_small (q d : Pol Q) (n : nat) : bool := (size q * size_of_power (size d) n <=? MOST_TERMS)%N.

(** p d^e without multiples of the monomial w, and e. *)
Fixpoint clear (n : nat) (w : Mon) (d p : Pol Q) : Pol Q * nat :=
  match n with
  | O => (p, O)
  | S n =>
    let (q, r) := factor p w in
    if is_zero r then (p, O)
    else
      let (r, e) := clear n w d r in
      if is_zero q then (r, S e)
      else if is_small q d (S e) then (padd (pmul q (ppow d (S e))) r, S e)
      else (p, O)
  end.

(** The monomial m is replaced by d. *)
Fixpoint replace (n : nat) (m : Mon) (d p : Pol Q) : Pol Q :=
  match n with
  | O => p
  | S n =>
    let (q, r) := factor p m in
    if is_zero r then p else if is_small r d 1 then replace n m d (padd q (pmul d r)) else p
  end.

Definition MOST_POWERS : nat := 40.
Definition MOST_VALUES : nat := 100.

Definition itself (k : positive) : Mon := mono_at k (vmon 1 mon0).

Fixpoint into (k : positive) (l : list positive) : list positive :=
  match l with
  | [] => [k]
  | j :: r => match (k ?= j)%positive with Eq => l | Gt => k :: l | Lt => j :: into k r end
  end.

Definition merged (p : poly) (l : list positive) : list positive := fold_left (fun l k => into k l) (variables p) l.

(** n if the constant value k is 1/n. *)
Definition root (t : M.t op) (k : positive) : option positive :=
  match constant_of t 4 k with
  | Some q => match Qred q with Qmake 1 n => Some n | _ => None end
  | None => None
  end.

Definition is_positive (t : M.t op) (facts : M.t bool) (classes : M.t positive) (strict : bool) (k : positive) : bool :=
  above t facts 50 strict k ||| above t facts 50 strict (rep classes k).

(** A power of the value k that is a polynomial in values before it; the value itself, if [expand] stopped at it. *)
Definition relation (t : M.t op) (tanhs : M.t positive) (facts : M.t bool) (classes : M.t positive) (level : nat)
    (k : positive) : option (Mon * poly) :=
  match M.find k t with
  | Some (OApp Sqrt a) =>
    if is_positive t facts classes false a then Some (power_of k 2, expand t classes CHAIN level Nowhere a) else None
  | Some (OApp Sech b) =>
    match M.find b tanhs with
    | Some h => Some (power_of k 2, PEsub (PEc 1%Q) (PEpow (expand t classes CHAIN level Nowhere h) 2))
    | None => None
    end
  | Some (OApp2 Power a c) =>
    match root t c with
    | Some n =>
      if is_positive t facts classes true a then Some (power_of k n, expand t classes CHAIN level Nowhere a) else None
    | None => None
    end
  | Some (OAdd _ _) | Some (OMul _ _) | Some (OOpp _) | Some (OPow _ _) =>
    Some (power_of k 1, expand t classes CHAIN level Nowhere k)
  | _ => None
  end.

Fixpoint eliminate (n : nat) (t : M.t op) (tanhs : M.t positive) (facts : M.t bool) (classes : M.t positive)
    (level : nat) (ks : list positive) (p : Pol Q) : Pol Q :=
  match n, ks with
  | S n, k :: ks =>
    let eliminate := eliminate n t tanhs facts classes level in
    match M.find k t with
    | Some (OApp Inv d) =>
      let e := expand t classes CHAIN level Nowhere d in
      if nowhere_zero t facts classes d && (terms_of e <=? MOST_TERMS)%N
      then eliminate (merged e ks) (fst (clear MOST_POWERS (itself k) (normal e) p))
      else eliminate ks p
    | _ =>
      match relation t tanhs facts classes level k with
      | Some (m, e) =>
        if (terms_of e <=? MOST_TERMS)%N then eliminate (merged e ks) (replace MOST_POWERS m (normal e) p)
        else eliminate ks p
      | None => eliminate ks p
      end
    end
  | _, _ => p
  end.

Lemma pmul_ok v a b : poleval v (pmul a b) = poleval v a * poleval v b.
Proof. apply (Pmul_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals). Qed.

Lemma padd_ok v a b : poleval v (padd a b) = poleval v a + poleval v b.
Proof. apply (Padd_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals). Qed.

Lemma ppow_ok v d n : poleval v (ppow d n) = poleval v d ^ n.
Proof.
  induction n as [|n IH]; cbn [ppow pow]; [apply RMicromega.Q2R_1|]. now rewrite pmul_ok, IH.
Qed.

Lemma is_zero_ok v p : is_zero p = true -> poleval v p = 0.
Proof.
  destruct p; try discriminate. simpl. intros H. apply Qeq_true in H. rewrite H. apply RMicromega.Q2R_0.
Qed.

Lemma itself_ok v k : meval v (itself k) = v k.
Proof.
  unfold itself. rewrite mono_at_ok. unfold meval. simpl. unfold Env.hd, Env.nth.
  replace (Pos.pred (1 + k)) with k by lia. ring.
Qed.

Lemma clear_ok v w d : poleval v d * meval v w = 1 -> forall n p,
  poleval v (fst (clear n w d p)) = poleval v d ^ snd (clear n w d p) * poleval v p.
Proof.
  intros H. induction n as [|n IH]; intros p; cbn [clear]; [cbn; ring|].
  assert (E := factor_ok p v w). destruct (factor p w) as [q r]. cbn [fst snd] in E.
  destruct (is_zero r); [cbn; ring|]. specialize (IH r). destruct (clear n w d r) as [r' e]. cbn [fst snd] in IH.
  assert (X : poleval v r' + poleval v q * poleval v d ^ S e = poleval v d ^ S e * poleval v p).
  { rewrite IH, E. cbn [pow]. replace (poleval v d * poleval v d ^ e * (poleval v q + meval v w * poleval v r))
      with (poleval v q * (poleval v d * poleval v d ^ e)
        + (poleval v d * meval v w) * (poleval v d ^ e * poleval v r)) by ring. rewrite H. ring. }
  destruct (is_zero q) eqn:Z.
  - cbn [fst snd]. rewrite <- X, (is_zero_ok v q Z). ring.
  - destruct (is_small q d (S e)); cbn [fst snd]; [|cbn; ring]. rewrite padd_ok, pmul_ok, ppow_ok, <- X. ring.
Qed.

Lemma replace_ok v m d : meval v m = poleval v d -> forall n p, poleval v (replace n m d p) = poleval v p.
Proof.
  intros H. induction n as [|n IH]; intros p; cbn [replace]; [reflexivity|].
  assert (E := factor_ok p v m). destruct (factor p m) as [q r]. cbn [fst snd] in E.
  destruct (is_zero r); [reflexivity|]. destruct (is_small r d 1); [|reflexivity].
  now rewrite IH, padd_ok, pmul_ok, E, H.
Qed.

Lemma root_ok t v k n x : sound t v -> root t k = Some n -> 0 < x -> Rpower x (v k) ^ Pos.to_nat n = x.
Proof.
  unfold root. intros T H P. destruct (constant_of t 4 k) as [q|] eqn:C; [|discriminate].
  apply (constant_of_ok t v T) in C. destruct (Qred q) as [[|[p|p|]|p] d] eqn:R; try discriminate.
  inversion H; subst. rewrite C, <- (Q2R_red q), R. unfold Rpower. rewrite <- exp_multiple, INR_IZR_INZ, positive_nat_Z.
  unfold Q2R. simpl Qnum. simpl Qden. rewrite <- Rmult_assoc.
  replace (IZR (Z.pos n) * (1 * / IZR (Z.pos n))) with 1; [rewrite Rmult_1_l; now apply exp_ln|].
  field. apply not_0_IZR. discriminate.
Qed.

Lemma is_positive_ok t v facts classes strict k : sound t v -> facts_right v facts -> respected v classes ->
  is_positive t facts classes strict k = true -> sign_at strict (v k).
Proof.
  unfold is_positive. intros T H C E. apply orb_prop in E. destruct E as [E|E]; apply (above_ok t facts v T H) in E.
  - exact E.
  - now rewrite (C k) in E.
Qed.

(* Or a proof would count to CHAIN. *)
Opaque CHAIN.

Lemma relation_ok t v tanhs facts classes level k m e : sound t v -> tanhs_right v tanhs -> facts_right v facts ->
  respected v classes -> relation t tanhs facts classes level k = Some (m, e) -> meval v m = peval v e.
Proof.
  unfold relation. intros T Th H C. destruct (M.find k t) as [o|] eqn:F; [|discriminate]. apply T in F.
  destruct o as [| | | | | |f a|g a c]; try discriminate;
    try (intros E; inversion E; subst; rewrite power_of_ok, (expand_ok t v classes T C); apply pow_1).
  - destruct f; try discriminate; cbn [evalop value1] in F.
    + destruct (is_positive _ _ _ _ _) eqn:B; [|discriminate]. intros E; inversion E; subst.
      apply (is_positive_ok t v facts classes false a T H C) in B.
      rewrite power_of_ok, (expand_ok t v classes T C), F. now apply pow2_sqrt.
    + destruct (M.find a tanhs) as [h|] eqn:G; [|discriminate]. intros E; inversion E; subst. apply Th in G.
      rewrite power_of_ok, one_minus_square, (expand_ok t v classes T C), F, G, RMicromega.Q2R_1. apply sech_square.
  - destruct g; try discriminate. cbn [evalop value2] in F. destruct (root t c) as [n|] eqn:R; [|discriminate].
    destruct (is_positive _ _ _ _ _) eqn:B; [|discriminate]. intros E; inversion E; subst.
    apply (is_positive_ok t v facts classes true a T H C) in B.
    rewrite power_of_ok, (expand_ok t v classes T C), F. now apply (root_ok t v c n).
Qed.

(** [eliminate] multiplies by a number that is not 0. *)
Lemma eliminate_ok t v tanhs facts classes level : sound t v -> tanhs_right v tanhs -> facts_right v facts ->
  respected v classes ->
  forall n ks p, exists c, c <> 0 /\ poleval v (eliminate n t tanhs facts classes level ks p) = c * poleval v p.
Proof.
  intros T Th H C. assert (O : forall p, exists c, c <> 0 /\ poleval v p = c * poleval v p) by (intros p; exists 1; lra).
  induction n as [|n IH]; intros ks p; [apply O|]. destruct ks as [|k ks]; [apply O|]. cbn [eliminate].
  assert (R : exists c, c <> 0 /\
    poleval v (match relation t tanhs facts classes level k with
      | Some (m, e) =>
        if (terms_of e <=? MOST_TERMS)%N
        then eliminate n t tanhs facts classes level (merged e ks) (replace MOST_POWERS m (normal e) p)
        else eliminate n t tanhs facts classes level ks p
      | None => eliminate n t tanhs facts classes level ks p
      end) = c * poleval v p).
  { destruct (relation t tanhs facts classes level k) as [[m e]|] eqn:Q; [|apply IH].
    apply (relation_ok t v) in Q; auto. destruct (_ <=? _)%N; [|apply IH].
    destruct (IH (merged e ks) (replace MOST_POWERS m (normal e) p)) as (c & C1 & C2).
    exists c. split; [exact C1|]. rewrite C2. f_equal. apply replace_ok. now rewrite <- normal_ok. }
  destruct (M.find k t) as [o|] eqn:F; [|exact R]. destruct o as [| | | | | |f d|]; try exact R.
  destruct f; try exact R. apply T in F. cbn [evalop value1] in F. clear R.
  destruct (_ && _) eqn:B; [|apply IH]. apply andb_prop in B. destruct B as [B _].
  assert (N : v d <> 0) by now apply (nowhere_zero_ok t facts classes v d T H C).
  set (e := expand t classes CHAIN level Nowhere d).
  assert (E : poleval v (normal e) = v d) by (rewrite <- normal_ok; now apply expand_ok).
  destruct (IH (merged e ks) (fst (clear MOST_POWERS (itself k) (normal e) p))) as (c & C1 & C2).
  exists (c * v d ^ snd (clear MOST_POWERS (itself k) (normal e) p)). split.
  + apply Rmult_integral_contrapositive_currified; [exact C1 | now apply pow_nonzero].
  + rewrite C2, clear_ok, E; [ring|]. rewrite E, itself_ok, F. now apply Rinv_r.
Qed.

Definition zero_at (t : M.t op) (tanhs : M.t positive) (facts : M.t bool) (classes : M.t positive) (j k : positive)
    (level : nat) : bool :=
  let a := expand t classes CHAIN level Nowhere j in
  let b := expand t classes CHAIN level Nowhere k in
  if (terms_of a <=? MOST_TERMS)%N && (terms_of b <=? MOST_TERMS)%N
  then let d := PEsub a b in is_zero (eliminate MOST_VALUES t tanhs facts classes level (merged d []) (normal d))
  else false.

Lemma difference_ok v a b : peval v (PEsub a b) = peval v a - peval v b.
Proof. reflexivity. Qed.

Lemma zero_at_ok t v tanhs facts classes j k level : sound t v -> tanhs_right v tanhs -> facts_right v facts ->
  respected v classes -> zero_at t tanhs facts classes j k level = true -> v j = v k.
Proof.
  unfold zero_at. intros T Th H C. destruct (_ && _); [|discriminate].
  set (a := expand t classes CHAIN level Nowhere j). set (b := expand t classes CHAIN level Nowhere k). intros Z.
  destruct (eliminate_ok t v tanhs facts classes level T Th H C MOST_VALUES (merged (PEsub a b) []) (normal (PEsub a b)))
    as (c & C1 & C2).
  rewrite (is_zero_ok v _ Z), <- normal_ok in C2.
  assert (D : peval v (PEsub a b) = v j - v k).
  { rewrite difference_ok. unfold a, b. now rewrite !(expand_ok t v classes T C). }
  rewrite D in C2. symmetry in C2. apply Rmult_integral in C2. destruct C2; [contradiction | lra].
Qed.

Definition fn_eq (f g : fn) : {f = g} + {f <> g}.
Proof. decide equality. Defined.
Definition fn2_eq (f g : fn2) : {f = g} + {f <> g}.
Proof. decide equality. Defined.

Definition same_call (t : M.t op) (classes : M.t positive) (j k : positive) : bool :=
  match M.find j t, M.find k t with
  | Some (OApp f a), Some (OApp g b) =>
    if fn_eq f g then Pos.eqb (rep classes a) (rep classes b) else false
  | Some (OApp2 f a a'), Some (OApp2 g b b') =>
    if fn2_eq f g then Pos.eqb (rep classes a) (rep classes b) && Pos.eqb (rep classes a') (rep classes b')
    else false
  | Some (OAdd a a'), Some (OAdd b b') | Some (OMul a a'), Some (OMul b b') =>
    Pos.eqb (rep classes a) (rep classes b) && Pos.eqb (rep classes a') (rep classes b')
  | Some OPi, Some OPi => true
  | _, _ => false
  end.

(** [existsb] up to the first element that satisfies the condition. *)
Fixpoint some {A : Type} (f : A -> bool) (l : list A) : bool :=
  match l with [] => false | a :: l => f a ||| some f l end.

Lemma some_exists {A} (f : A -> bool) l : some f l = true -> exists a, f a = true.
Proof. induction l as [|a l IH]; [discriminate|]. simpl. destruct (f a) eqn:E; [now exists a | exact IH]. Qed.

Definition LEVELS : list nat := [1; 2; 3; 4; 6; 10]%nat.

Definition same (t : M.t op) (tanhs : M.t positive) (facts : M.t bool) (classes : M.t positive) (j k : positive) : bool :=
  same_call t classes j k ||| some (same_at t tanhs classes j k) LEVELS
  ||| some (zero_at t tanhs facts classes j k) LEVELS.

Lemma same_at_ok t v tanhs classes j k level : sound t v -> tanhs_right v tanhs -> respected v classes ->
  same_at t tanhs classes j k level = true -> v j = v k.
Proof.
  unfold same_at. intros T Th C H. destruct (_ && _); [|discriminate].
  rewrite <- (expand_ok t v classes T C CHAIN level Nowhere j), <- (expand_ok t v classes T C CHAIN level Nowhere k).
  revert H. generalize (expand t classes CHAIN level Nowhere j) (expand t classes CHAIN level Nowhere k). intros a b H.
  rewrite !normal_ok. destruct (same_normal (normal a) (normal b)) eqn:E; [now apply same_normal_ok|].
  assert (R := rules_for_ok t v tanhs classes (PEadd a b) T Th C).
  destruct (rules_for t tanhs classes (PEadd a b)) as [|r l]; [discriminate|].
  rewrite <- (reduce_ok v (r :: l) (normal a) R), <- (reduce_ok v (r :: l) (normal b) R). now apply same_normal_ok.
Qed.

Lemma same_call_ok t v classes j k : sound t v -> respected v classes ->
  same_call t classes j k = true -> v j = v k.
Proof.
  unfold same_call. intros T C H.
  assert (R : forall a b, Pos.eqb (rep classes a) (rep classes b) = true -> v a = v b).
  { intros a b E. apply Pos.eqb_eq in E. rewrite <- (C a), <- (C b). now rewrite E. }
  destruct (M.find j t) as [o|] eqn:J; [|discriminate]. apply T in J.
  destruct (M.find k t) as [p|] eqn:K; [|destruct o; discriminate]. apply T in K.
  rewrite J, K. destruct o, p; try discriminate; cbn [evalop]; try reflexivity.
  - apply andb_prop in H. destruct H as [A B]. now rewrite (R _ _ A), (R _ _ B).
  - apply andb_prop in H. destruct H as [A B]. now rewrite (R _ _ A), (R _ _ B).
  - destruct (fn_eq f f0) as [->|]; [|discriminate]. now rewrite (R _ _ H).
  - destruct (fn2_eq g g0) as [->|]; [|discriminate]. apply andb_prop in H. destruct H as [A B].
    now rewrite (R _ _ A), (R _ _ B).
Qed.

Lemma same_ok t v tanhs facts classes j k : sound t v -> tanhs_right v tanhs -> facts_right v facts ->
  respected v classes -> same t tanhs facts classes j k = true -> v j = v k.
Proof.
  unfold same. intros T Th Fa C H. apply orb_prop in H. destruct H as [H|H].
  - apply orb_prop in H. destruct H as [H|H]; [eauto using same_call_ok|].
    apply some_exists in H. destruct H as [level H]. eauto using same_at_ok.
  - apply some_exists in H. destruct H as [level H]. eauto using zero_at_ok.
Qed.

(** ** Classes *)

Definition key (z : Z) : positive := match z with Zpos p => Pos.succ p | _ => 1%positive end.

(** For exp(l) with l = ln(a) and a positive a: the value a. *)
Definition exp_of_log (t : M.t op) (facts : M.t bool) (classes : M.t positive) (o : op) : option positive :=
  match o with
  | OApp Exp l =>
    match M.find (rep classes l) t with
    | Some (OApp Log a) => if is_positive t facts classes true a then Some a else None
    | _ => None
    end
  | _ => None
  end.

Lemma exp_of_log_ok t v facts classes o a : sound t v -> facts_right v facts -> respected v classes ->
  exp_of_log t facts classes o = Some a -> evalop v o = v a.
Proof.
  unfold exp_of_log. intros T H C. destruct o as [| | | | | |f l|]; try discriminate. destruct f; try discriminate.
  destruct (M.find (rep classes l) t) as [o|] eqn:F; [|discriminate]. apply T in F.
  destruct o as [| | | | | |f b|]; try discriminate. destruct f; try discriminate.
  destruct (is_positive _ _ _ _ _) eqn:P; [|discriminate]. intros E; inversion E; subst.
  apply (is_positive_ok t v facts classes true a T H C) in P. cbn [evalop value1] in *. rewrite <- (C l), F.
  now apply exp_ln.
Qed.

(** The class of each statement, for all statements in order, and what is known of values. What is known of a value
    is known of its class. *)
Fixpoint classify (s : state) (c : code) (seen classes : M.t positive) (facts : M.t bool) : M.t positive * M.t bool :=
  match c with
  | [] => (classes, facts)
  | (k, o) :: c =>
    match exp_of_log (table s) facts classes o with
    | Some a => classify s c seen (M.add k (rep classes a) classes) facts
    | None =>
      let z := key (print_of (prints s) k) in
      match M.find z seen with
      | None => classify s c (M.add z k seen) classes facts
      | Some r =>
        if Pos.eqb (rep classes r) r &&& negb (Pos.eqb k r) &&& same (table s) (tanhs s) facts classes k r
        then
          let facts := match M.find k facts with Some b => learn facts (r, b) | None => facts end in
          classify s c seen (M.add k r classes) facts
        else classify s c seen classes facts
      end
    end
  end.

Fixpoint seen_inputs (n : nat) (k : positive) (seen : M.t positive) : M.t positive :=
  match n with
  | O => seen
  | S n => seen_inputs n (Pos.succ k) (M.add (key (print_of (M.empty Z) k)) k seen)
  end.

(** The classes of all values on the domain of the statements [u]. *)
Definition classes_of (s : state) (u : code) (inputs : nat) : M.t positive * M.t bool :=
  classify s (rev' (written s)) (seen_inputs inputs 1 (M.empty positive)) (M.empty positive) (facts_in u).

Lemma add_respected v classes k r : respected v classes -> v k = v r -> respected v (M.add k r classes).
Proof.
  intros C E j. unfold rep. destruct (Pos.eq_dec j k) as [->|N].
  - rewrite M.gss. now symmetry.
  - rewrite M.gso by assumption. apply C.
Qed.

Theorem classify_ok s v : table_ok s -> Sat v (written s) -> forall c seen classes facts, Sat v c ->
  facts_right v facts -> respected v classes ->
  respected v (fst (classify s c seen classes facts)) /\ facts_right v (snd (classify s c seen classes facts)).
Proof.
  intros T S.
  assert (So : sound (table s) v) by (intros k o F; now apply (in_table s)).
  assert (Th : tanhs_right v (tanhs s)) by (intros b h F; now apply (proj2 T b h F)).
  induction c as [|[k o] c IH]; intros seen classes facts Sc Fa C; [now split|].
  inversion Sc as [|x l E0 Sc']; subst. cbn [fst snd] in E0.
  cbn [classify]. destruct (exp_of_log (table s) facts classes o) as [a|] eqn:X.
  { apply IH; auto. apply add_respected; [exact C|]. rewrite (C a), E0.
    now apply (exp_of_log_ok (table s) v facts classes). }
  destruct (M.find _ seen) as [r|]; [|now apply IH].
  destruct (Pos.eqb (rep classes r) r &&& negb (Pos.eqb k r) &&& same (table s) (tanhs s) facts classes k r) eqn:E;
    [|now apply IH].
  apply andb_prop in E. destruct E as [_ E]. apply (same_ok (table s) v (tanhs s) facts classes k r So Th Fa C) in E.
  apply IH; [exact Sc'| |now apply add_respected].
  destruct (M.find k facts) as [b|] eqn:F; [|exact Fa]. apply learn_ok; [|exact Fa].
  destruct (Fa k b F) as [A B]. unfold fact_right in *. cbn [fst snd] in *. now rewrite <- E.
Qed.

Theorem classes_ok s u v n : table_ok s -> Sat v (written s) -> Sat v u -> Dom v u ->
  respected v (fst (classes_of s u n)) /\ facts_right v (snd (classes_of s u n)).
Proof.
  intros T S U D. apply classify_ok; auto using facts_in_ok.
  - unfold Sat, rev'. rewrite <- rev_alt. now apply List.Forall_rev.
  - intros j. unfold rep. now rewrite M.gempty.
Qed.

(** Whether two values are equal; in a [deep] state they are compared even if their classes differ. *)
Definition agree (s : state) (classes : M.t positive) (facts : M.t bool) (j k : positive) : bool :=
  Pos.eqb (rep classes j) (rep classes k) ||| (deep s &&& same (table s) (tanhs s) facts classes j k).

Lemma agree_ok s v classes facts j k : table_ok s -> Sat v (written s) -> facts_right v facts ->
  respected v classes -> agree s classes facts j k = true -> v j = v k.
Proof.
  unfold agree. intros T S Fa C H. apply orb_prop in H. destruct H as [H|H].
  - apply Pos.eqb_eq in H. rewrite <- (C j), <- (C k). now rewrite H.
  - apply andb_prop in H. destruct H as [_ H]. apply (same_ok (table s) v (tanhs s) facts classes j k); auto.
    + intros i o F. now apply (in_table s).
    + intros b h F. now apply (proj2 T b h F).
Qed.
