(** Equal values in one program: local identities in a ring, found and proved by computation.

    Values that seem equal, by a fingerprint modulo a prime, are compared as polynomials in values before
    them. What the fingerprint says is never trusted: [classes] relates only values whose polynomials have
    one normal form, and [classes_ok] proves that these are equal. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals RMicromega Ring PArith FMapPositive.
From Coq.micromega Require Import EnvRing.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadPrograms.
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

(** A value as a polynomial: sums and products are opened, as long as [level] allows to change from one to
    the other; [inside] says where we are: nowhere, in a sum, in a product. *)
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

Definition sound (t : M.t op) (v : valuation) : Prop := forall k o, M.find k t = Some o -> v k = evalop v o.
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

(** The monomials x_k² and x_j x_k with j < k. *)
Definition square_of (k : positive) : Mon := mono_at k (vmon 2 mon0).
Definition product_of (j k : positive) : Mon := mono_at j (vmon 1 (mono_at (k - j) (vmon 1 mon0))).

Lemma mono_at_ok (v : valuation) k m : meval v (mono_at k m) = meval (fun j => v (Pos.pred (j + k))) m.
Proof.
  unfold meval, mono_at. destruct k as [k|k|]; simpl; unfold Env.jump; apply Mphi_morph; intros j; f_equal; lia.
Qed.

Lemma square_of_ok v k : meval v (square_of k) = v k ^ 2.
Proof.
  unfold square_of. rewrite mono_at_ok. unfold meval. simpl. unfold Env.hd, Env.nth.
  replace (Pos.pred (1 + k)) with k by lia. ring.
Qed.

Lemma product_of_ok v j k : (j < k)%positive -> meval v (product_of j k) = v j * v k.
Proof.
  intros H. unfold product_of. rewrite mono_at_ok. unfold meval at 1. cbn [Mphi].
  fold (meval (Env.tail (fun i => v (Pos.pred (i + j)))) (mono_at (k - j) (vmon 1 mon0))).
  rewrite mono_at_ok. unfold meval; simpl. unfold Env.hd, Env.nth, Env.tail, Env.jump.
  replace (Pos.pred (1 + j)) with j by lia.
  replace (Pos.pred (Pos.pred (1 + (k - j)) + 1 + j)) with k by lia. ring.
Qed.

Definition is_one (t : M.t op) (k : positive) : bool :=
  match M.find k t with Some (OConst q) => Qeq_bool q 1 | _ => false end.

(** Of w = 1/(1 + exp m): m and the exponential. *)
Definition logistic_parts (t : M.t op) (w : positive) : option (positive * positive) :=
  match M.find w t with
  | Some (OApp Inv d) =>
    match M.find d t with
    | Some (OAdd i e) =>
      match M.find e t with
      | Some (OApp Exp m) => if is_one t i then Some (m, e) else None
      | _ => None
      end
    | _ => None
    end
  | _ => None
  end.

(** Whether w is σ(a). *)
Definition is_logistic (t : M.t op) (w a : positive) : bool :=
  match logistic_parts t w with
  | Some (m, _) =>
    match M.find m t, M.find a t with
    | Some (OOpp b), _ => Pos.eqb b a
    | _, _ => false
    end
    || match M.find a t with Some (OOpp b) => Pos.eqb b m | _ => false end
  | None => false
  end.

Definition rules_of (t : M.t op) (classes : M.t positive) (k : positive) : list rule :=
  match M.find k t with
  | Some (OApp Sech b) =>
    let h := Pos.pred k in
    match M.find h t with
    | Some (OApp Tanh c) =>
      if Pos.eqb c b then [(square_of k, normal (PEsub (PEc 1%Q) (PEpow (PEX (rep classes h)) 2)))] else []
    | _ =>
      let w := Pos.pred (Pos.pred (Pos.pred (Pos.pred h))) in
      match halved t b with
      | Some a =>
        let x := PEX (rep classes w) in
        if is_logistic t w a then [(square_of k, normal (PEmul (PEmul (PEc 4%Q) x) (PEsub (PEc 1%Q) x)))] else []
      | None => []
      end
    end
  | Some (OApp Inv _) =>
    match logistic_parts t k with
    | Some (_, e) =>
      let j := rep classes e in
      let right := normal (PEsub (PEc 1%Q) (PEX k)) in
      if Pos.ltb j k then [(product_of j k, right)] else if Pos.ltb k j then [(product_of k j, right)] else []
    | None => []
    end
  | _ => []
  end.

Lemma is_one_ok t v k : sound t v -> is_one t k = true -> v k = 1.
Proof.
  unfold is_one. intros T H. destruct (M.find k t) as [o|] eqn:F; [|discriminate]. apply T in F.
  destruct o; try discriminate. rewrite F. simpl. apply Qeq_true in H. rewrite H. apply RMicromega.Q2R_1.
Qed.

Lemma logistic_parts_ok t v w m e : sound t v -> logistic_parts t w = Some (m, e) ->
  v e = exp (v m) /\ v w = / (1 + exp (v m)).
Proof.
  unfold logistic_parts. intros T H.
  destruct (M.find w t) as [o|] eqn:W; [|discriminate]. destruct o as [| | | | | |f d|]; try discriminate.
  destruct f; try discriminate. destruct (M.find d t) as [o|] eqn:D; [|discriminate].
  destruct o as [| |i x| | | | |]; try discriminate. destruct (M.find x t) as [o|] eqn:E; [|discriminate].
  destruct o as [| | | | | |f a|]; try discriminate. destruct f; try discriminate.
  destruct (is_one t i) eqn:I; [|discriminate]. inversion H; subst.
  apply T in W. apply T in D. apply T in E. apply (is_one_ok t v) in I; [|exact T]. simpl in *.
  split; [exact E|]. now rewrite W, D, I, E.
Qed.

Lemma is_logistic_ok t v w a : sound t v -> is_logistic t w a = true -> v w = sigmoid (v a).
Proof.
  unfold is_logistic. intros T H. destruct (logistic_parts t w) as [[m e]|] eqn:L; [|discriminate].
  apply (logistic_parts_ok t v) in L; [|exact T]. destruct L as [_ L]. rewrite L. unfold sigmoid.
  assert (N : v m = - v a); [|now rewrite N].
  apply orb_prop in H. destruct H as [H|H].
  - destruct (M.find m t) as [o|] eqn:F; [|discriminate]. apply T in F. destruct o; try discriminate.
    apply Pos.eqb_eq in H. subst. exact F.
  - destruct (M.find a t) as [o|] eqn:F; [|discriminate]. apply T in F. destruct o; try discriminate.
    apply Pos.eqb_eq in H. subst. rewrite F. simpl. ring.
Qed.

Definition right_rule (v : valuation) (r : rule) : Prop := meval v (fst r) = poleval v (snd r).

Lemma halved_sound t b a v : sound t v -> halved t b = Some a -> v b = v a * / 2.
Proof.
  unfold halved. intros T H. destruct (M.find b t) as [o|] eqn:F; [|discriminate].
  destruct o as [| | |x y| | | |]; try discriminate. destruct (M.find y t) as [o|] eqn:G; [|discriminate].
  destruct o as [q| | | | | | |]; try discriminate. destruct (Qeq_bool q half) eqn:E; [|discriminate].
  inversion H; subst. rewrite (T _ _ F). simpl. rewrite (T _ _ G). simpl.
  apply Qeq_true in E. now rewrite E, half_ok.
Qed.

Lemma rules_of_ok t v classes k : sound t v -> respected v classes -> List.Forall (right_rule v) (rules_of t classes k).
Proof.
  intros T C. unfold rules_of. destruct (M.find k t) as [o|] eqn:F; [|constructor].
  destruct o as [| | | | | |f b|]; try constructor. destruct f; try constructor.
  - destruct (logistic_parts t k) as [[m e]|] eqn:L; [|constructor].
    apply (logistic_parts_ok t v) in L; [|exact T]. destruct L as [L1 L2].
    assert (Q : v e * v k = 1 - v k) by (rewrite L1, L2; apply logistic_relation).
    destruct (Pos.ltb_spec (rep classes e) k).
    + constructor; [|constructor]. unfold right_rule; cbn [fst snd].
      rewrite product_of_ok, (C e), <- normal_ok by assumption. unfold peval; simpl. unfold Env.nth.
      now rewrite Q, RMicromega.Q2R_1.
    + destruct (Pos.ltb_spec k (rep classes e)); [|constructor].
      constructor; [|constructor]. unfold right_rule; cbn [fst snd].
      rewrite product_of_ok, (C e), <- normal_ok by assumption. unfold peval; simpl. unfold Env.nth.
      now rewrite Rmult_comm, Q, RMicromega.Q2R_1.
  - apply T in F. simpl in F.
    assert (P : List.Forall (right_rule v)
      match halved t b with
      | Some a => let x := PEX (rep classes (Pos.pred (Pos.pred (Pos.pred (Pos.pred (Pos.pred k)))))) in
        if is_logistic t (Pos.pred (Pos.pred (Pos.pred (Pos.pred (Pos.pred k))))) a
        then [(square_of k, normal (PEmul (PEmul (PEc 4%Q) x) (PEsub (PEc 1%Q) x)))] else []
      | None => []
      end).
    { destruct (halved t b) as [a|] eqn:H; [|constructor]. cbv zeta.
      destruct (is_logistic t _ a) eqn:L; [|constructor]. apply (is_logistic_ok t v) in L; [|exact T].
      constructor; [|constructor]. unfold right_rule; cbn [fst snd].
      rewrite square_of_ok, <- normal_ok. unfold peval; cbn [PEeval]. unfold Env.nth.
      rewrite C, F, L, (halved_sound t b a v T H), sech_half, RMicromega.Q2R_1.
      replace (Q2R 4) with 4 by (unfold Q2R; simpl; field). reflexivity. }
    destruct (M.find (Pos.pred k) t) as [o|] eqn:G; [|exact P].
    destruct o as [| | | | | |f c|]; try exact P. destruct f; try exact P.
    destruct (Pos.eqb_spec c b) as [->|]; [|constructor]. apply T in G. simpl in G.
    constructor; [|constructor]. unfold right_rule; cbn [fst snd].
    rewrite square_of_ok, <- normal_ok. unfold peval; cbn [PEeval]. unfold Env.nth.
    rewrite C, F, G, sech_square, RMicromega.Q2R_1. reflexivity.
Qed.

Fixpoint variables (p : poly) : list positive :=
  match p with
  | PEc _ => []
  | PEX k => [k]
  | PEadd a b | PEsub a b | PEmul a b => variables a ++ variables b
  | PEopp a | PEpow a _ => variables a
  end.

Definition rules_for (t : M.t op) (classes : M.t positive) (p : poly) : list rule :=
  flat_map (rules_of t classes) (variables p).

Lemma rules_for_ok t v classes p : sound t v -> respected v classes -> List.Forall (right_rule v) (rules_for t classes p).
Proof.
  intros T C. unfold rules_for. induction (variables p) as [|k l IH]; [constructor|]. simpl.
  apply List.Forall_app. split; [now apply rules_of_ok | exact IH].
Qed.

Definition reduce (rules : list rule) (p : Pol Q) : Pol Q :=
  match rules with [] => p | _ => PNSubstL 0%Q 1%Q qadd qmul Qeq_bool p rules 4 8 end.

Lemma reduce_ok v rules p : List.Forall (right_rule v) rules -> poleval v (reduce rules p) = poleval v p.
Proof.
  intros H. destruct rules as [|r l]; [reflexivity|]. unfold reduce, poleval. symmetry.
  apply (PNSubstL_ok Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory) rationals).
  revert H. generalize (r :: l). intros rs. induction rs as [|[m q] rs IH]; intros H; [exact I|].
  inversion H; subst. split; [assumption | now apply IH].
Qed.

(** A bound of the number of terms of the normal form. *)
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

Definition same_at (t : M.t op) (classes : M.t positive) (j k : positive) (level : nat) : bool :=
  let a := expand t classes CHAIN level Nowhere j in
  let b := expand t classes CHAIN level Nowhere k in
  if (terms_of a <=? MOST_TERMS)%N && (terms_of b <=? MOST_TERMS)%N
  then
    let c := normal a in
    let d := normal b in
    if same_normal c d then true
    else
      let rules := rules_for t classes a ++ rules_for t classes b in
      match rules with [] => false | _ => same_normal (reduce rules c) (reduce rules d) end
  else false.

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

Definition same (t : M.t op) (classes : M.t positive) (j k : positive) : bool :=
  same_call t classes j k || existsb (same_at t classes j k) [1%nat; 2%nat; 3%nat; 4%nat; 6%nat; 10%nat].

Lemma same_at_ok t v classes j k level : sound t v -> respected v classes ->
  same_at t classes j k level = true -> v j = v k.
Proof.
  unfold same_at. intros T C H. destruct (_ && _); [|discriminate].
  rewrite <- (expand_ok t v classes T C CHAIN level Nowhere j), <- (expand_ok t v classes T C CHAIN level Nowhere k).
  revert H. generalize (expand t classes CHAIN level Nowhere j) (expand t classes CHAIN level Nowhere k). intros a b H.
  rewrite !normal_ok. destruct (same_normal (normal a) (normal b)) eqn:E; [now apply same_normal_ok|].
  assert (R : List.Forall (right_rule v) (rules_for t classes a ++ rules_for t classes b))
    by (apply List.Forall_app; split; now apply rules_for_ok).
  destruct (rules_for t classes a ++ rules_for t classes b) as [|r l]; [discriminate|].
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

Lemma same_ok t v classes j k : sound t v -> respected v classes -> same t classes j k = true -> v j = v k.
Proof.
  unfold same. intros T C H. apply orb_prop in H. destruct H as [H|H]; [eauto using same_call_ok|].
  apply existsb_exists in H. destruct H as [level [_ H]]. eauto using same_at_ok.
Qed.

(** ** Fingerprints *)

Definition prime : Z := 2305843009213693951.  (* 2^61 - 1 *)

Definition fn_number (f : fn) : Z :=
  match f with
  | Inv => 1 | Exp => 2 | Log => 3 | Sqrt => 4 | Sin => 5 | Cos => 6 | Tan => 7 | Sec => 8 | Csc => 9
  | Cot => 10 | Asin => 11 | Acos => 12 | Atan => 13 | Acot => 14 | Sinh => 15 | Cosh => 16 | Tanh => 17
  | Sech => 18 | Csch => 19 | Coth => 20 | Asinh => 21 | Acosh => 22 | Atanh => 23 | Sigmoid => 24
  | Softplus => 25 | Logcosh => 26 | Silu => 27 | Log1p => 28 | Expm1 => 29 | Log2 => 30 | Log10 => 31
  | Exp2 => 32 | Abs => 33 | Sign => 34 | Erf => 35 | Erfc => 36 | Erfi => 37 | Fresnels => 38
  | Fresnelc => 39
  end%Z.

Definition fn2_number (g : fn2) : Z :=
  match g with Power => 51 | Logaddexp => 52 | Hypot => 53 | Xlogy => 54 end%Z.

Definition fold (z : Z) : Z :=
  let y := (Z.land z prime + Z.shiftr z 61)%Z in if (prime <=? y)%Z then (y - prime)%Z else y.

Definition madd (a b : Z) : Z := let c := (a + b)%Z in if (prime <=? c)%Z then (c - prime)%Z else c.
Definition mneg (a : Z) : Z := match a with Z0 => Z0 | _ => (prime - a)%Z end.
Definition mmul (a b : Z) : Z := fold (a * b).

Definition mix (a b : Z) : Z := let x := madd a (b * 982451653)%Z in mmul (mmul x x) (madd x 15485863%Z).

Fixpoint mpow (a : Z) (n : positive) : Z :=
  match n with
  | xH => a
  | xO m => let b := mpow a m in mmul b b
  | xI m => let b := mpow a m in mmul (mmul b b) a
  end.

(** The inverse by Euclid's algorithm; 0 for 0. *)
Fixpoint euclid (fuel : nat) (a b x y : Z) : Z :=
  match fuel, b with
  | O, _ | _, Z0 => x
  | S fuel, _ => let (q, r) := Z.div_eucl a b in euclid fuel b r y (x - q * y)%Z
  end.

Definition minv (a : Z) : Z := (euclid 100 prime a 0 1 mod prime)%Z.

Definition print_of (prints : M.t Z) (k : positive) : Z :=
  match M.find k prints with Some z => z | None => mix (Zpos k * 2654435761)%Z 77 end.

(** exp is a square, so that tanh and sech of half the argument are rational in its root. *)
Definition root_of_exp (a : Z) : Z := mix a 2.

Definition fingerprint (prints : M.t Z) (o : op) : Z :=
  let p := print_of prints in
  match o with
  | OConst q =>
    let n := (Qnum q mod prime)%Z in match Qden q with xH => n | d => mmul n (minv (Zpos d mod prime)%Z) end
  | OPi => 314159265358979
  | OAdd a b => madd (p a) (p b)
  | OMul a b => mmul (p a) (p b)
  | OOpp a => mneg (p a)
  | OPow a n => match n with O => 1 | _ => mpow (p a) (Pos.of_nat n) end
  | OApp Inv a => minv (p a)
  | OApp Exp a => let u := root_of_exp (p a) in mmul u u
  | OApp Tanh a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in
    let e := mmul u u in mmul (madd 1 (mneg e)) (minv (madd 1 e))
  | OApp Sech a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in mmul (madd u u) (minv (madd 1 (mmul u u)))
  | OApp f a => mix (p a) (fn_number f)
  | OApp2 g a b => mix (mix (p a) (fn2_number g)) (p b)
  end%Z.

Definition key (z : Z) : positive := match z with Zpos p => Pos.succ p | _ => 1%positive end.

(** All statements in order: the class of each. *)
Fixpoint classify (t : M.t op) (c : code) (prints : M.t Z) (seen classes : M.t positive) : M.t positive :=
  match c with
  | [] => classes
  | (k, o) :: c =>
    let z := fingerprint prints o in
    let prints := M.add k z prints in
    match M.find (key z) seen with
    | None => classify t c prints (M.add (key z) k seen) classes
    | Some r =>
      if Pos.eqb (rep classes r) r && negb (Pos.eqb k r) && same t classes k r
      then classify t c prints seen (M.add k r classes)
      else classify t c prints seen classes
    end
  end.

Fixpoint seen_inputs (n : nat) (k : positive) (seen : M.t positive) : M.t positive :=
  match n with
  | O => seen
  | S n => seen_inputs n (Pos.succ k) (M.add (key (print_of (M.empty Z) k)) k seen)
  end.

Definition classes_of (t : M.t op) (c : code) (inputs : nat) : M.t positive :=
  classify t (rev' c) (M.empty Z) (seen_inputs inputs 1 (M.empty positive)) (M.empty positive).

Theorem classify_ok t v : sound t v -> forall c prints seen classes,
  respected v classes -> respected v (classify t c prints seen classes).
Proof.
  intros T. induction c as [|[k o] c IH]; intros prints seen classes C; [exact C|].
  cbn [classify]. destruct (M.find _ seen) as [r|]; [|now apply IH].
  destruct (Pos.eqb (rep classes r) r && negb (Pos.eqb k r) && same t classes k r) eqn:E; [|now apply IH].
  apply IH. apply andb_prop in E. destruct E as [_ E]. apply (same_ok t v classes k r T C) in E.
  intros j. unfold rep. destruct (Pos.eq_dec j k) as [->|N].
  - rewrite M.gss. now symmetry.
  - rewrite M.gso by assumption. apply C.
Qed.

Theorem classes_ok t v c n : sound t v -> respected v (classes_of t c n).
Proof. intros T. apply classify_ok; auto. intros j. unfold rep. now rewrite M.gempty. Qed.
